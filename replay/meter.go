package replay

import (
	"pinwheel/mem"
	"pinwheel/replay/pinned"
	"pinwheel/verbs"
)

// meter is the provider of virtual mode. Registration takes no real time;
// what it would take by the cost model is added up, and its pages count as
// pinned from the begin of the registration to the end of the deregistration.
// So virtual time lives here and in the engine: the cache above is the one
// that ships and knows nothing of it.
type meter struct {
	costs   verbs.Costs
	pins    *pinned.Counter
	startNs int64            // of the operation on the cache that is measured
	spentNs int64            // by provider calls since
	handle  uint64           // last one given out
	readyNs map[uint64]int64 // per registration, by handle: when its registering ends

	registered   int // registrations and deregistrations of the operation that is measured
	deregistered int

	// freed is being released until freedNs. It must be gone before it can be
	// registered again and, under a budget, before anything can.
	freed    mem.Range
	freedNs  int64
	budgeted bool
}

var _ verbs.Provider = (*meter)(nil)

func newMeter(c verbs.Costs, p *pinned.Counter) *meter {
	return &meter{costs: c, pins: p, readyNs: map[uint64]int64{}}
}

// begin starts to measure an operation at virtual time t.
func (m *meter) begin(t int64) {
	m.startNs, m.spentNs, m.registered, m.deregistered = t, 0, 0, 0
}

func (m *meter) Name() string { return "sim" }

func (m *meter) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	r, err := verbs.WholePages("virtual register", r)
	if err != nil {
		return verbs.Region{}, err
	}
	if m.budgeted || m.freed.Overlaps(r) {
		m.spentNs = max(m.spentNs, m.freedNs-m.startNs)
	}
	m.handle++
	m.pins.Pin(m.startNs+m.spentNs, r)
	m.spentNs += m.costs.Register.Ns(r.Pages())
	m.readyNs[m.handle] = m.startNs + m.spentNs
	m.registered++
	return verbs.Region{Range: r, Access: a, LKey: uint32(m.handle), Handle: m.handle}, nil
}

func (m *meter) Deregister(reg verbs.Region) error {
	m.spentNs += m.costs.Deregister.Ns(reg.Range.Pages())
	if m.freedNs <= m.startNs {
		m.freed = reg.Range
	}
	m.freed, m.freedNs = m.freed.Union(reg.Range), max(m.freedNs, m.startNs+m.spentNs)
	m.pins.Unpin(m.startNs+m.spentNs, reg.Range)
	delete(m.readyNs, reg.Handle)
	m.deregistered++
	return nil
}

// Limits are none: the budget is the cache's.
func (m *meter) Limits() verbs.Limits {
	return verbs.Limits{MaxRegions: mem.Unlimited, MaxRegionBytes: mem.Unlimited, MaxPinnedBytes: mem.Unlimited, PinnedSource: "simulation"}
}

func (m *meter) Close() error { return nil }
