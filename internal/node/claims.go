package node

import "time"

// Claim is the wish of one member's helper for a processor.
type Claim struct {
	Owner Owner
	CPU   int   // -1 if it has none
	Bytes int64 // registered memory of its process
}

// Owner returns what this member's claims are known by.
func (m *Member) Owner() Owner { return m.self }

// claimPatience is how long an update waits for other members.
const claimPatience = 100 * time.Millisecond

// UpdateClaims calls change with the claims of all living members and stores what it returns: the
// claim of this member, which is withdrawn if it is not among them, and the processors of the
// others. It changes nothing if it fails, with ErrClosed, ErrCorrupt, or because another member
// keeps the segment locked.
func (m *Member) UpdateClaims(change func([]Claim) []Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locked(claimPatience, func() {
		own := uint64(0)
		for _, c := range change(m.seg.claims(m.index)) {
			if c.Owner == m.self {
				m.slot.store(slotClaimed, uint64(max(c.Bytes, 0)))
				own = claimWord(c.CPU)
			} else if slot := m.seg.slotOf(c.Owner); slot != nil && slot.load(slotClaim) != 0 {
				slot.store(slotClaim, claimWord(c.CPU))
			}
		}
		m.slot.store(slotClaim, own)
	})
}

func claimWord(cpu int) uint64 { return uint64(min(max(cpu, -1), maxCPU) + claimBias) }

// claims returns those of the living. own is the slot of the caller, -1 if it has none.
func (s *segment) claims(own int) (all []Claim) {
	for i := range s.high() {
		slot := s.mem.slot(i)
		claim := slot.load(slotClaim)
		if slot.load(slotState) != slotLive || claim == 0 || claim > maxCPU+claimBias || ownerOf(slot).PID <= 0 {
			continue
		}
		if i == own || s.isLocked(slotLock(i)) { // looking at the lock costs less than looking at the process
			all = append(all,
				Claim{Owner: ownerOf(slot), CPU: int(claim) - claimBias, Bytes: max(int64(slot.load(slotClaimed)), 0)})
		}
	}
	return all
}

// slotOf returns the slot of a member, nil if it has none.
func (s *segment) slotOf(o Owner) memory {
	for i := range s.high() {
		if slot := s.mem.slot(i); slot.load(slotState) == slotLive && ownerOf(slot) == o {
			return slot
		}
	}
	return nil
}
