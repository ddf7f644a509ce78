package replay

import (
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// virtualProvider is the provider of virtual time. Registration takes no real
// time. The provider adds up what it would take by the cost model, and counts its
// pages as pinned from the begin of the registration to the end of the
// deregistration. The cache above is the one that ships and knows nothing of
// virtual time.
type virtualProvider struct {
	costs verbs.Costs
	// registerNs is how long a registration of so many pages holds up who makes it.
	registerNs func(pages uint64) int64

	pages   *pinned.Counter
	startNs int64            // of the operation on the cache that is measured
	spentNs int64            // by provider calls since
	handle  uint64           // last one given out
	readyNs map[uint64]int64 // per registration, by handle: when its registering ends

	journal *Journal // nil: nobody asked for one

	registered   int // registrations and deregistrations of the operation that is measured
	deregistered int

	// freed is being released until freedNs. It must be gone before it can be
	// registered again and, under a budget, before anything can.
	freed    mem.Range
	freedNs  int64
	budgeted bool
}

var _ verbs.Provider = (*virtualProvider)(nil)

func newVirtualProvider(c verbs.Costs, pages *pinned.Counter) *virtualProvider {
	return &virtualProvider{costs: c, registerNs: c.Register.Ns, pages: pages, readyNs: map[uint64]int64{}}
}

// begin starts to measure an operation at virtual time t.
func (p *virtualProvider) begin(t int64) {
	p.startNs, p.spentNs, p.registered, p.deregistered = t, 0, 0, 0
}

func (p *virtualProvider) Name() string { return "sim" }

func (p *virtualProvider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	r, err := verbs.WholePages("virtual register", r)
	if err != nil {
		return verbs.Region{}, err
	}
	if p.budgeted || p.freed.Overlaps(r) {
		p.spentNs = max(p.spentNs, p.freedNs-p.startNs)
	}
	p.handle++
	beganNs := p.startNs + p.spentNs
	p.pages.Pin(beganNs, r)
	p.spentNs += p.registerNs(r.Pages())
	p.readyNs[p.handle] = p.startNs + p.spentNs
	p.journal.registered(p.handle, r, beganNs, p.startNs+p.spentNs)
	p.registered++
	return verbs.Region{Range: r, Access: a, LKey: uint32(p.handle), Handle: p.handle}, nil
}

func (p *virtualProvider) Deregister(reg verbs.Region) error {
	beganNs := p.startNs + p.spentNs
	p.spentNs += p.costs.Deregister.Ns(reg.Range.Pages())
	p.journal.deregistered(reg.Handle, beganNs, p.startNs+p.spentNs)
	if p.freedNs <= p.startNs {
		p.freed = reg.Range
	}
	p.freed, p.freedNs = p.freed.Union(reg.Range), max(p.freedNs, p.startNs+p.spentNs)
	p.pages.Unpin(p.startNs+p.spentNs, reg.Range)
	delete(p.readyNs, reg.Handle)
	p.deregistered++
	return nil
}

// Limits are none: the budget is the cache's.
func (p *virtualProvider) Limits() verbs.Limits {
	return verbs.Limits{MaxRegions: mem.Unlimited, MaxRegionBytes: mem.Unlimited, MaxPinnedBytes: mem.Unlimited, PinnedSource: "simulation"}
}

func (p *virtualProvider) Close() error { return nil }
