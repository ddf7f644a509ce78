package node

import (
	"math"
	"math/bits"
	"time"
)

// The budget is a sum of grants. A member pins no more than its grant, raises it under the main
// lock and only while the sum of all grants is below the capacity, and lowers it after it has
// unpinned. So what is pinned stays below the budget at every moment, whoever dies in between.
//
// The capacity grows to the budget as ranks join: each brings its equal part and has it at
// once. A rank that can't join, because it is in another namespace or because something failed,
// keeps to its equal part, which nobody else has. Grants of those that have left are free.

// budget returns the bytes that all may pin, 0 for no bound.
func (s *segment) budget() int64 { return int64(min(s.mem.load(headerBudget), math.MaxInt64)) }

// ranks returns how many parts the budget has.
func (s *segment) ranks() int64 { return int64(min(max(s.mem.load(headerRanks), 1), math.MaxInt32)) }

// capacity is how much of the budget belongs to ranks that have joined at some time.
func (s *segment) capacity() int64 {
	joined := int64(0)
	for w := headerJoined; w < headerWords; w++ {
		joined += int64(bits.OnesCount64(s.mem.load(w)))
	}
	budget, ranks := s.budget(), s.ranks()
	if joined >= ranks {
		return budget
	}
	return budget / ranks * joined
}

// granted is the sum of all grants. Without the main lock it may be a mixture of moments.
func (s *segment) granted() (sum int64) {
	budget := s.budget()
	for i := range s.high() {
		if slot := s.mem.slot(i); slot.load(slotState) == slotLive {
			sum = min(sum+min(max(int64(slot.load(slotGranted)), 0), budget), budget)
		}
	}
	return sum
}

// takePart brings the part of this rank and takes it, or what is free if the rank has been here
// before.
func (m *Member) takePart() error {
	s := m.seg
	if s.budget() == 0 {
		s.mem.store(headerRanks, uint64(min(m.opt.Ranks, math.MaxInt32)))
		s.mem.store(headerBudget, uint64(m.opt.BudgetBytes))
	}
	if s.budget() != m.opt.BudgetBytes {
		return ErrBudget
	}
	m.ranks = s.ranks()
	bit := m.opt.Rank
	if bit < 0 {
		bit = int(m.self.PID)
	}
	w, mask := headerJoined+bit%joinedBits/64, uint64(1)<<(bit%64)
	s.mem.store(w, s.mem.load(w)|mask)
	m.grant(min(s.budget()/s.ranks(), s.capacity()-s.granted()))
	return nil
}

// grant changes the share of this member.
func (m *Member) grant(bytes int64) {
	m.granted = max(bytes, 0)
	m.slot.store(slotGranted, uint64(m.granted))
}

// Most returns what all members together may pin: no share is larger.
func (m *Member) Most() int64 {
	if m.opt.BudgetBytes <= 0 {
		return math.MaxInt64
	}
	return m.opt.BudgetBytes
}

// Grow raises the share of this member to at least bytes if so much is free, and returns the
// share. It neither blocks nor waits long: it is for the path of a registration. Without a
// budget the share is mem.Unlimited.
func (m *Member) Grow(bytes int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opt.BudgetBytes <= 0 {
		return math.MaxInt64
	}
	if bytes > m.share() {
		_ = m.locked(0, func() { m.raise(bytes) }) // if that fails it keeps what it has
	}
	return m.share()
}

// share is what this member may pin. Alone it has its equal part.
func (m *Member) share() int64 {
	if m.lost != nil {
		return m.opt.Part()
	}
	return m.granted
}

// raise is Grow under the main lock. It takes an eighth of what is left beside, so that growing
// takes few calls.
func (m *Member) raise(bytes int64) {
	if ceiling := m.slot.load(slotCeiling); uint64(bytes) > ceiling {
		return
	}
	need, free := bytes-m.granted, m.seg.capacity()-m.seg.granted()
	if need > free && m.seg.reap() {
		free = m.seg.capacity() - m.seg.granted()
	}
	if need <= free {
		more := need + (free-need)/8
		m.grant(int64(min(uint64(m.granted+more), m.slot.load(slotCeiling))))
	}
}

// Shrink lowers the share of this member to bytes, which must be no less than what it has
// pinned, and returns the share.
func (m *Member) Shrink(bytes int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opt.BudgetBytes <= 0 {
		return math.MaxInt64
	}
	if m.usable() == nil && bytes < m.granted {
		m.grant(bytes)
	}
	return m.share()
}

// lingerNs is how long the grant of a dead member stays reserved. The kernel unpins most memory
// before the process is gone, but the buffers of an io_uring later, in a worker of its own
// (io_ring_exit_work), and nobody can see when.
const lingerNs = int64(250 * time.Millisecond)

// reap frees the slots of dead members under the main lock, and reports whether it freed any.
func (s *segment) reap() (freed bool) {
	now := NowNs()
	for i := range s.high() {
		slot := s.mem.slot(i)
		// The lock comes first, because it costs less to look at. A child of the dead member
		// has its lock, and its registrations too.
		if slot.load(slotState) != slotLive || s.isLocked(slotLock(i)) || !ownerOf(slot).gone() {
			continue
		}
		found := int64(slot.load(slotDeadNs))
		switch {
		case slot.load(slotGranted) > 0 && (found <= 0 || found > now):
			slot.store(slotDeadNs, uint64(now))
		case slot.load(slotGranted) == 0 || now-found >= lingerNs:
			slot.store(slotGranted, 0)
			slot.store(slotState, slotFree)
			freed = true
		}
	}
	return freed
}
