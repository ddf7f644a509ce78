package vmmc

import (
	"math"
	"time"

	"pinwheel/mem"
)

// completed takes a completion. The first error ends the queue pair. It may come after those that it flushed, if
// another caller took these. link.mu is held.
func (s *rdmaSender) completed(c completion) {
	if c.err != nil {
		if s.err == nil {
			s.flushed = c.flushed
		}
		s.failed(c.err)
		if s.flushed && !c.flushed {
			s.err, s.flushed = c.err, false
		}
		s.refused = s.refused || c.access
		return
	}
	s.worked = true
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
			if p.to.shorts--; p.to.shorts == 0 && !s.holder.Leased(p.to.number) {
				p.to.unlendShort(s) // others wait for it
			}
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
		n := s.look()
		over := n == 0 && !begin.IsZero() && time.Since(begin) > pollTime
		if over {
			op.polled = false // from now on run looks: also for what is posted later
			s.stir()
		}
		o.mu.Unlock()
		switch {
		case over:
			return
		case n == 0 && begin.IsZero():
			begin = time.Now()
		}
	}
}

// look takes the completions that are there, posts what waited for them, and returns how many there were. link.mu is
// held.
func (s *rdmaSender) look() int {
	n := s.collect()
	if s.up && n > 0 {
		s.link.post()
	}
	return n
}

// collect takes the completions that are there. link.mu is held.
func (s *rdmaSender) collect() int {
	n, _ := s.qp.Poll(s.batch[:]) // run hears of an error
	for _, c := range s.batch[:n] {
		s.completed(c)
	}
	return n
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
			if s.overlaps(i, op.low, op.high) {
				if s.collect(); !s.up || s.overlaps(i, op.low, op.high) {
					s.stir()
					return
				}
			}
			op.begun = true
			i.writing++
		}
		for len(op.rest) > 0 {
			p := &op.rest[0]
			n := min(uint64(len(p.src)), s.qp.MaxMessage())
			if n > 0 {
				if s.full() {
					s.stir()
					return
				}
				err := s.qp.Write(s.next, s.sendable(p.src[:n], op), i.remote.addr+p.at, i.remote.key)
				if err != nil {
					s.failed(err)
					return
				}
				s.add(posting{op: op, to: i, low: op.low, high: op.high})
				if !op.lookedFor() {
					s.stir()
				}
			}
			if p.src, p.at = p.src[n:], p.at+n; len(p.src) == 0 {
				op.rest = op.rest[1:]
			}
		}
		if op.writes == 0 && s.first < s.next { // without bytes: it comes after what is on its way
			if s.full() {
				s.stir()
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

// overlaps tells whether a message to these bytes of an export has to wait for an earlier one. If RDMA fails, what was
// posted and has not completed is sent again, though it may have arrived: nothing of it may have been written over by
// then. link.mu is held.
func (s *rdmaSender) overlaps(i *Import, low, high uint64) bool {
	for id := s.first; id < s.next; id++ {
		if p := &s.posted[id%sendDepth]; p.to == i && p.low < high && low < p.high {
			return true
		}
	}
	return false
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

// sendable returns registered memory with the bytes of the next write. No processor may read what the caller
// registered.
func (s *rdmaSender) sendable(src []byte, op *Op) localBytes {
	if op != nil && op.registered != nil {
		return localBytes{Range: mem.RangeOf(src), lkey: op.registered.LKey()}
	}
	if len(src) > copyBytes {
		return localBytes{Range: mem.RangeOf(src), lkey: op.from.use.LKey()}
	}
	slot := s.place(s.next, len(src))
	copy(slot, src)
	return localBytes{Range: mem.RangeOf(slot), lkey: s.copying.use.LKey(), inline: true}
}

// place returns where the bytes of a short write are copied to.
func (s *rdmaSender) place(id uint64, n int) []byte { return s.copies[id%sendDepth*copyBytes:][:n] }

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

// prepare registers the source of an op that can go by RDMA. It returns why the source can't be registered.
func (o *outbound) prepare(op *Op) error {
	op.direct = false
	if op.noRDMA || !o.mayUseRDMA() {
		return nil
	}
	op.site()
	o.mu.Lock()
	leased := op.to.lend(op)
	o.mu.Unlock()
	if !leased {
		return nil
	}
	op.rest = append([]piece{{op.src, op.at}}, op.more...) // its own: what RDMA leaves undone is sent from the beginning
	op.low, op.high = extent(op.rest)
	if op.registered != nil {
		op.direct = true
		return nil
	}
	err := o.node.fabric.acquire(op)
	if err != nil && !op.insists {
		o.node.fabric.unregistered.Do(func() {
			o.node.warn("a message goes through the connection, as its source can't be registered: %v", err)
		})
	}
	op.direct = err == nil
	return err
}

// extent returns the first byte of an export that the pieces of a message go to, and the one after the last.
func extent(pieces []piece) (low, high uint64) {
	low = math.MaxUint64
	for _, p := range pieces {
		if len(p.src) > 0 {
			low, high = min(low, p.at), max(high, p.at+uint64(len(p.src)))
		}
	}
	return low, high
}
