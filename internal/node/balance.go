package node

import (
	"math"
	"slices"
	"time"
)

// Shares move once a second at most, by ceilings: under the main lock one member lowers the
// ceiling of another, which releases idle registrations until it is below, and then gives the
// rest of its share back. Meanwhile nobody but those that it is meant for may take it.

const (
	moveNs  = int64(time.Second)
	tight   = 64 // free memory is short below this part of the budget
	least   = 8  // every member may keep this part of its equal share
	portion = 16 // the part of a share that moves at a time
	// Misses must cost one member this much a second, and leadingBy times as much as another, before
	// a share moves between them: moving one costs registrations, too.
	costlyNs  = int64(time.Millisecond)
	leadingBy = 2
	// A share that was not used for so many calls of Settle is free for others.
	remembered = 10
)

// Settle is to be called once a second. pinnedBytes is the most that was pinned since the last
// call. It may move shares of others. The caller then releases idle registrations beyond the
// ceiling, and lowers its share by Shrink to what it keeps: no more than the ceiling, no less than
// what is pinned, and what it has used lately.
func (m *Member) Settle(pinnedBytes int64) (ceiling, keep int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opt.BudgetBytes <= 0 {
		return math.MaxInt64, math.MaxInt64
	}
	copy(m.recent[1:], m.recent[:])
	m.recent[0] = pinnedBytes
	m.settled++
	_ = m.locked(0, func() { // if that fails, others do it
		m.seg.reap()
		if now := NowNs(); !within(m.seg.mem.load(headerMovedNs), now, moveNs) {
			m.seg.mem.store(headerMovedNs, uint64(now))
			m.seg.move()
		}
	})
	if m.usable() != nil {
		return m.share(), m.share()
	}
	floor := m.opt.Part() / least
	ceiling = max(int64(min(m.slot.load(slotCeiling), math.MaxInt64)), floor)
	if m.settled <= remembered {
		return ceiling, ceiling
	}
	return ceiling, min(max(slices.Max(m.recent[:]), floor), ceiling)
}

// within reports whether a time of the segment is at most ns ago. One that is in the future is nonsense.
func within(then uint64, now, ns int64) bool {
	return then <= uint64(now) && now-int64(then) < ns
}

// sharer is a member as move sees it.
type sharer struct {
	slot                    memory
	granted, pinned, wanted int64
	demandNs                int64
}

// move sets the ceilings of all members. It is called under the main lock.
func (s *segment) move() {
	budget := s.budget()
	var all []sharer
	var wanted int64
	for i := range s.high() {
		slot := s.mem.slot(i)
		if slot.load(slotState) != slotLive {
			continue
		}
		state := published(slot, budget)
		one := sharer{slot: slot, granted: state.ShareBytes, pinned: state.PinnedBytes, demandNs: state.DemandNs}
		one.wanted = min(max(int64(slot.load(slotWanted)), 0), budget)
		wanted = min(wanted+one.wanted, budget)
		all = append(all, one)
	}
	free, floor := s.capacity()-s.granted(), budget/s.ranks()/least
	switch {
	case wanted > free:
		hold(all, func(o *sharer) bool { return o.wanted == 0 })
		lend(all, wanted-free, floor)
	case free >= budget/tight || !shift(all, floor):
		hold(all, func(*sharer) bool { return false })
	}
}

// hold makes the present shares of some members their ceilings, and takes those of the others away.
func hold(all []sharer, held func(*sharer) bool) {
	for i := range all {
		ceiling := int64(math.MaxInt64)
		if held(&all[i]) {
			ceiling = all[i].granted
		}
		all[i].slot.store(slotCeiling, uint64(ceiling))
	}
}

// lend lowers ceilings by bytes in all, for members that can't go on: each of the others gives in
// proportion to what it has above the floor.
func lend(all []sharer, bytes, floor int64) {
	var above int64
	for _, o := range all {
		if o.wanted == 0 {
			above += max(o.granted-floor, 0)
		}
	}
	for _, o := range all {
		if has := max(o.granted-floor, 0); o.wanted == 0 && has > 0 {
			part := int64(math.Ceil(float64(bytes) * (float64(has) / float64(above))))
			o.slot.store(slotCeiling, uint64(o.granted-min(part, has)))
		}
	}
}

// shift moves a portion to the member whose misses cost most: of a share that is not in use, else of
// the share of whose misses cost least. It returns false if no member needs more than another.
func shift(all []sharer, floor int64) bool {
	var to, from *sharer
	for i := range all {
		if o := &all[i]; to == nil || o.demandNs > to.demandNs {
			to = o
		}
	}
	for i := range all {
		o := &all[i]
		if o == to || o.granted <= floor {
			continue
		}
		if from == nil || o.cheaperThan(from) {
			from = o
		}
	}
	if from == nil || to.demandNs < costlyNs || to.demandNs < leadingBy*from.demandNs {
		return false
	}
	hold(all, func(o *sharer) bool { return o != to })
	step := max(from.granted/portion, from.granted-from.pinned)
	from.slot.store(slotCeiling, uint64(max(from.granted-step, floor)))
	return true
}

// cheaperThan reports whether o loses less by a smaller share.
func (o *sharer) cheaperThan(p *sharer) bool {
	if o.demandNs != p.demandNs {
		return o.demandNs < p.demandNs
	}
	return o.granted-o.pinned > p.granted-p.pinned
}

// awaitPatience is how long a registration waits for memory that others have to release first:
// they look once a second.
const awaitPatience = 4 * time.Second

// awaitAgain is how long nobody waits once more after waiting in vain.
const awaitAgain = 30 * time.Second

// Await waits until the share of this member is at least bytes, and reports whether it is: for a
// registration that finds no room though this member has released everything that it can.
// The others release idle registrations meanwhile. Who has just waited in vain does not wait again.
func (m *Member) Await(bytes int64) bool {
	want := func(bytes int64) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.locked(claimPatience, func() {
			m.slot.store(slotWanted, uint64(max(bytes, 0)))
			if bytes > 0 {
				m.slot.store(slotCeiling, math.MaxInt64)
				m.seg.move()
			}
		}) == nil
	}
	if m.Grow(bytes) >= bytes {
		return true
	}
	if bytes > m.Most() || within(m.refusedNs.Load(), NowNs(), int64(awaitAgain)) || !want(bytes-m.Grow(0)) {
		return false
	}
	defer want(0)
	for end := time.Now().Add(awaitPatience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if m.Grow(bytes) >= bytes {
			return true
		}
	}
	m.refusedNs.Store(uint64(NowNs()))
	return false
}
