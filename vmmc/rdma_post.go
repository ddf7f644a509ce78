package vmmc

import (
	"bytes"
	"slices"
	"time"

	"pinwheel/mem"
)

// completed takes a completion. The first error ends the queue pair. link.mu is held.
func (s *rdmaSender) completed(c completion) {
	if c.err != nil {
		s.failed(c.err)
		s.refused = s.refused || c.access
		return
	}
	s.posted[c.id%sendDepth].done = true
	s.reap()
}

// reap ends the ops whose writes have completed, in their order. link.mu is held.
func (s *rdmaSender) reap() {
	for s.first < s.next && s.posted[s.first%sendDepth].done {
		p := s.posted[s.first%sendDepth]
		op := p.op
		s.posted[s.first%sendDepth] = posting{}
		s.first++
		if op == nil {
			p.to.writing--
			p.to.releaseIdle()
		} else if op.writes--; op.writes == 0 && !op.queued {
			s.link.arrived(op)
		}
	}
}

// pollTime is how long Send looks for the completion of its message before it sleeps.
const pollTime = 50 * time.Microsecond

// poll looks for the completion of an op that goes by RDMA. To sleep takes longer than most messages do.
func (o *outbound) poll(op *Op) {
	var begin time.Time
	for {
		o.mu.Lock()
		s := o.rdma
		if s == nil || !op.direct || op.sent.reached || op.writes == 0 && !op.queued {
			o.mu.Unlock()
			return
		}
		var batch [completionBatch]completion
		n, _ := s.qp.Poll(batch[:]) // run hears of an error
		s.take(batch[:n])
		o.mu.Unlock()
		switch {
		case n > 0:
		case begin.IsZero():
			begin = time.Now()
		case time.Since(begin) > pollTime:
			s.stir()
			return
		}
	}
}

// take takes completions, and posts what waited for them. link.mu is held.
func (s *rdmaSender) take(batch []completion) {
	for _, c := range batch {
		s.completed(c)
	}
	if s.up && len(batch) > 0 {
		s.link.post()
	}
}

// stir makes run wait for completions.
func (s *rdmaSender) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// arrived ends an op whose bytes are with the exporter. mu is held.
func (o *outbound) arrived(op *Op) {
	i := op.to
	o.node.fabric.release(&op.from)
	op.unlend()
	i.writing--
	if op.notify && op.err == nil {
		o.notify(op)
	} else {
		op.fail(nil) // reaches both states
	}
	i.releaseIdle()
}

// post posts the writes of the ops at the head of the queue that go by RDMA. mu is held.
func (o *outbound) post() {
	s := o.rdma
	for s != nil && s.up && len(o.queue) > 0 && o.queue[0].direct && o.confirmed >= o.lastData && len(o.sending) == 0 {
		op := o.queue[0]
		i := op.to
		if op.err != nil || i.err != nil {
			if op.registered == nil || op.writes == 0 {
				op.fail(i.err)
			} else if op.err == nil { // its use must last until its writes have completed
				op.err = i.err
				i.failed()
			}
			o.dequeue(op)
			continue
		}
		if !op.begun {
			op.begun = true
			i.writing++
		}
		for len(op.rest) > 0 {
			p := &op.rest[0]
			n := min(uint64(len(p.src)), s.qp.MaxMessage())
			if n > 0 {
				if s.full() {
					return
				}
				src, lkey := s.sendable(p.src[:n], op)
				err := s.qp.Write(s.next, src, lkey, i.remote.addr+p.at, i.remote.key)
				if err != nil {
					s.failed(err)
					return
				}
				s.add(posting{op: op})
				if !op.polled {
					s.stir()
				}
			}
			if p.src, p.at = p.src[n:], p.at+n; len(p.src) == 0 {
				op.rest = op.rest[1:]
			}
		}
		if op.writes == 0 && s.first < s.next { // without bytes: it comes after what is on its way
			if s.full() {
				return
			}
			s.add(posting{op: op, done: true})
		}
		o.dequeue(op)
	}
	if len(o.queue) > 0 && !o.queue[0].direct {
		o.stir()
	}
}

// full tells whether no more may be posted: a device may take more than was asked for, and lose completions.
func (s *rdmaSender) full() bool { return s.next-s.first >= sendDepth }

func (s *rdmaSender) add(p posting) {
	s.posted[s.next%sendDepth] = p
	s.next++
	if p.op != nil {
		p.op.writes++
	}
}

// sendable returns registered memory with the bytes of the next write.
func (s *rdmaSender) sendable(src []byte, op *Op) (r mem.Range, lkey uint32) {
	if op != nil && op.registered != nil {
		return mem.RangeOf(src), op.registered.LKey()
	}
	if len(src) > copyBytes {
		return mem.RangeOf(src), op.from.use.LKey()
	}
	slot := s.place(s.next, len(src))
	copy(slot, src)
	return mem.RangeOf(slot), s.copying.use.LKey()
}

// place returns where the bytes of a short write are copied to.
func (s *rdmaSender) place(id uint64, n int) []byte { return s.copies[id%sendDepth*copyBytes:][:n] }

// manyPosted is how many writes are outstanding before short messages look for completions.
const manyPosted = 16

// short sends a short message at once, if nothing has to go before it, and tells whether it did. Its copy is sent
// again if RDMA fails: nobody has to wait for its completion.
func (i *Import) short(src []byte, off uint64) bool {
	o := i.link
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.rdma
	if !i.rdma() || i.err != nil || len(o.queue) > 0 || len(o.sending) > 0 || o.confirmed < o.lastData {
		return false
	}
	if s.next-s.first >= manyPosted {
		var batch [completionBatch]completion
		n, _ := s.qp.Poll(batch[:]) // run hears of an error
		if s.take(batch[:n]); s.full() || !s.up {
			return false
		}
	}
	r, lkey := s.sendable(src, nil)
	if err := s.qp.Write(s.next, r, lkey, i.remote.addr+off, i.remote.key); err != nil {
		s.failed(err)
		return false
	}
	i.writing++
	s.add(posting{to: i, at: off, bytes: len(src)})
	if !s.later {
		s.later = true
		time.AfterFunc(2*pollTime, func() {
			o.mu.Lock()
			s.later = false
			o.mu.Unlock()
			s.stir()
		})
	}
	return true
}

// failed ends the queue pair, after the first error. link.mu is held.
func (s *rdmaSender) failed(err error) {
	if s.err != nil {
		return
	}
	s.err, s.up = err, false
	s.qp.Fail()
	s.stir()
}

// dequeue removes an op from the head of the queue. mu is held.
func (o *outbound) dequeue(op *Op) {
	o.queue = o.queue[1:]
	op.queued = false
	switch {
	case op.begun && op.writes == 0:
		o.arrived(op)
	case op.told: // its frame comes before the Release
		op.to.writing--
		op.to.releaseIdle()
	case !op.begun:
		o.node.fabric.release(&op.from)
		op.unlend()
	}
}

// writing tells whether RDMA writes are on their way, or may land still. mu is held.
func (o *outbound) writing() bool { return o.rdma != nil && o.rdma.first < o.rdma.next }

// giveUp ends the use of RDMA for now. What has not arrived goes through the connection, again from its
// beginning: the exporter has said that nothing else lands. link.mu is held.
func (s *rdmaSender) giveUp() {
	o := s.link
	o.rdma = nil
	var again []*Op
	for ; s.first < s.next; s.first++ {
		p := s.posted[s.first%sendDepth]
		if p.op == nil {
			op := newOp(p.to, bytes.Clone(s.place(s.first, p.bytes)), p.at, SendOptions{})
			op.told = true
			again = append(again, op)
		} else if p.op.writes--; p.op.writes == 0 && !p.op.queued {
			again = append(again, p.op)
		}
	}
	o.queue = append(again, o.queue...)
	for _, op := range o.queue {
		if op.direct {
			o.node.fabric.release(&op.from)
			op.direct, op.queued = false, true
			if op.begun {
				op.to.writing--
				op.begun = false
				op.to.releaseIdle()
			}
		}
	}
	o.queue = slices.DeleteFunc(o.queue, func(op *Op) bool {
		if op.registered != nil {
			op.queued = false
			op.fail(ErrNoRDMA)
		}
		return op.registered != nil
	})
}

// prepare registers the source of an op that can go by RDMA.
func (o *outbound) prepare(op *Op) {
	op.direct = false
	if op.noRDMA || !o.mayUseRDMA() {
		return
	}
	op.site()
	o.mu.Lock()
	leased := op.to.lend(op)
	o.mu.Unlock()
	if !leased {
		return
	}
	op.rest = append([]piece{{op.src, op.at}}, op.more...) // its own: what RDMA leaves undone is sent from the beginning
	if op.registered != nil {
		op.direct = true
		return
	}
	if err := o.node.fabric.acquire(op); err != nil {
		o.node.fabric.unregistered.Do(func() {
			o.node.warn("a message goes through the connection, as its source can't be registered: %v", err)
		})
		return
	}
	op.direct = true
}
