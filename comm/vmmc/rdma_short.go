package vmmc

import (
	"slices"
	"time"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/predictor"
)

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
	end := off + uint64(len(src))
	if s.next-s.first >= manyPosted || s.overlaps(i, off, end) {
		if s.look(); s.full() || !i.rdma() || s.overlaps(i, off, end) {
			return false
		}
	}
	if !i.lendShort(s) {
		return false
	}
	if err := s.qp.Write(s.next, s.sendable(src, nil), i.remote.addr+off, i.remote.key); err != nil {
		s.failed(err)
		return false
	}
	i.writing++
	i.shorts++
	s.add(posting{to: i, low: off, high: end})
	i.sent(uint64(len(src)))
	s.lookLater()
	return true
}

// laterTime is how long nobody looks for the completions of short messages at most. Whoever waits for them calls stir.
const laterTime = time.Millisecond

// lookLater has run wait for the completions of short messages soon, if nobody has taken them before. link.mu is held.
func (s *rdmaSender) lookLater() {
	if s.later {
		return
	}
	s.later = true
	time.AfterFunc(laterTime, func() {
		s.link.mu.Lock()
		defer s.link.mu.Unlock()
		s.later = false
		if s.first < s.next {
			s.stir()
		}
		s.unlendShorts()
	})
}

// lendShort begins the lease of the short messages of an import with the first of a burst, and tells whether there is
// one. link.mu is held.
func (i *Import) lendShort(s *rdmaSender) bool {
	if i.lent {
		return s.holder.Leased(i.number)
	}
	i.lease() // the holder knows the import from now on
	i.lentNs = clock.NowNs()
	if !s.holder.Use(i.number, i.lentNs) {
		return false
	}
	i.lent = true
	s.lent = append(s.lent, i)
	return true
}

// unlendShorts ends the leases of the bursts that are over. link.mu is held.
func (s *rdmaSender) unlendShorts() {
	for k := len(s.lent) - 1; k >= 0; k-- {
		if i := s.lent[k]; i.shorts == 0 {
			i.unlendShort(s)
		}
	}
	if len(s.lent) > 0 {
		s.lookLater()
	}
}

// unlendShort ends the lease of a burst, all of which has arrived. The predictor hears of one message. link.mu is held.
func (i *Import) unlendShort(s *rdmaSender) {
	i.lent = false
	s.lent = slices.DeleteFunc(s.lent, func(o *Import) bool { return o == i })
	now := clock.NowNs()
	s.holder.Complete(i.number, true, predictor.Use{
		Range: mem.Range{End: mem.Addr(i.bytes)}, StartNs: i.lentNs, EndNs: now, Op: opCopy, Frames: copySite,
	}, now)
}
