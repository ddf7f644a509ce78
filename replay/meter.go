package replay

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// meter is the provider of virtual mode: registration takes no real time, but
// the modelled one is added up and its pages count as pinned from its begin
// to the end of its deregistration. So virtual time lives here and in the
// engine; the cache above is the one that ships and knows nothing of it.
type meter struct {
	costs   verbs.Costs
	pins    *pins
	startNs int64 // of the operation on the cache that is measured
	spentNs int64 // by provider calls since
	nextKey uint64
	readyNs map[uint64]int64 // per registration, by handle: when its registering ends

	registered   []mem.Range // by the operation that is measured
	deregistered int
}

// begin starts measuring an operation at virtual time t.
func (m *meter) begin(t int64) {
	m.startNs, m.spentNs, m.registered, m.deregistered = t, 0, m.registered[:0], 0
}

func (m *meter) Name() string { return "sim" }

// Register implements verbs.Provider.
func (m *meter) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	r = r.PageAligned()
	m.nextKey++
	m.pins.at(m.startNs, m.startNs+m.spentNs, r, 1)
	m.spentNs += m.costs.Register.Ns(r.Pages())
	m.readyNs[m.nextKey] = m.startNs + m.spentNs
	m.registered = append(m.registered, r)
	return verbs.Region{Range: r, Access: a, LKey: uint32(m.nextKey), Handle: m.nextKey}, nil
}

// Deregister implements verbs.Provider.
func (m *meter) Deregister(reg verbs.Region) error {
	m.spentNs += m.costs.Deregister.Ns(reg.Range.Pages())
	m.pins.at(m.startNs, m.startNs+m.spentNs, reg.Range, -1)
	delete(m.readyNs, reg.Handle)
	m.deregistered++
	return nil
}

// Limits implements verbs.Provider: none; the budget is the cache's.
func (m *meter) Limits() verbs.Limits {
	return verbs.Limits{MaxRegions: mem.Unlimited, MaxRegionBytes: mem.Unlimited, MaxPinnedBytes: mem.Unlimited, PinnedSource: "simulation"}
}

// Close implements verbs.Provider.
func (m *meter) Close() error { return nil }
