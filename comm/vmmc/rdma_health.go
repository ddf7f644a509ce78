package vmmc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
)

// failed ends the queue pair, after the first error. link.mu is held.
func (s *rdmaSender) failed(err error) {
	if s.err != nil {
		return
	}
	s.err, s.up = err, false
	close(s.failing)
	s.qp.Fail()
	s.wakeUp()
}

// wakeUp has run wait for what is left of an attempt that is over, and nobody else. link.mu is held.
func (s *rdmaSender) wakeUp() {
	if s.sleeper != nil {
		s.sleeper.wake()
	}
	s.stir()
}

// end fails the queue pair at the end of the attempt. It also ends the wait for what was posted, if the device flushes
// nothing: one that has failed may not.
func (s *rdmaSender) end(ctx context.Context, cancel func()) {
	select {
	case <-s.over:
	case <-s.link.ended:
	case <-s.failing:
	case <-ctx.Done():
		return
	}
	s.link.mu.Lock()
	s.ended = true // run waits for nothing but completions from now on
	s.link.mu.Unlock()
	s.qp.Fail()
	s.link.mu.Lock()
	s.wakeUp()
	s.link.mu.Unlock()
	select {
	case <-time.After(s.link.silence):
		cancel()
	case <-ctx.Done():
	}
}

// probe sends a write without bytes, which needs no key. Its answer shows that the devices reach each other: those that
// serve different networks connect without noticing. No message has to wait to find that out.
func (s *rdmaSender) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.link.silence)
	defer cancel()
	if err := s.qp.Write(0, localBytes{}, 0, 0); err != nil {
		return err
	}
	var c [1]completion
	if _, err := s.qp.Wait(ctx, c[:]); err != nil {
		return err
	}
	return c[0].err
}

// errStalled ends an attempt that makes no progress. Some devices send again without end, or lose completions.
var errStalled = errors.New("a message was not answered for as long as a peer may be silent")

// progress is how far writes have completed, and since when that has not changed.
type progress struct {
	first   uint64
	sinceNs int64
}

// stalled tells whether the oldest write has been on its way for longer than that.
func (p *progress) stalled(first, next uint64, nowNs, longestNs int64) bool {
	if first == next || first != p.first || p.sinceNs == 0 {
		p.first, p.sinceNs = first, nowNs
		return false
	}
	return nowNs-p.sinceNs > longestNs
}

// giveUp ends the use of RDMA for now. What is not known to have arrived goes through the connection, again from its
// beginning: the exporter has said that nothing else lands. What did arrive so arrives twice, the same bytes at the
// same place, over which nothing else was written: see overlaps. link.mu is held.
func (s *rdmaSender) giveUp() {
	o := s.link
	o.rdma = nil
	for _, i := range s.lent {
		i.lent, i.shorts = false, 0
	}
	s.lent = nil
	var again []*Op
	for ; s.first < s.next; s.first++ {
		p := s.posted[s.first%sendDepth]
		if p.op == nil {
			op := newOp(p.to, bytes.Clone(s.place(s.first, int(p.high-p.low))), p.low, SendOptions{})
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
		if op.insists {
			op.queued = false
			op.fail(ErrNoRDMA)
		}
		return op.insists
	})
}
