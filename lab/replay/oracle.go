package replay

import (
	"pinwheel/internal/usage"
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// oraclePath is the clairvoyant bound: the least memory with which nobody
// would stall. It is driven by a simulation in which registration costs
// nothing, so that every need comes at its no-stall time.
//
// Whatever serves a need of range r during [s, e] is one registration of at
// least r, so every page of r is pinned from s - register(r) until
// e + deregister(r). The bound is the union of these intervals: between two
// needs a page stays pinned exactly where releasing it would not pay. It
// grants a helper that does any number of things at once, so no policy can
// beat it without stalling.
//
// A need is known when it comes, but pins its pages some time before. So all
// of this rank's accounts run late, by the cost of registering the largest
// buffer (from the pass before): what happens at t is booked at t + lateNs.
type oraclePath struct {
	costs  verbs.Costs
	pages  *pinned.Counter
	stats  *Counts
	lateNs int64
	until  map[mem.Range]int64 // per range: when its last registration is gone
}

func (o *oraclePath) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	r := n.rng.PageAligned()
	from := t - o.costs.Register.Ns(r.Pages())
	o.pages.Pin(from+o.lateNs, r)
	o.stats.Needs++
	if until, ok := o.until[r]; !ok || until < from {
		o.stats.HelperRegs++
		if ok {
			o.stats.HelperDeregs++
		}
	}
	o.until[r] = never // in use
	*u = bufferUse{need: *n, needNs: t}
	return 0, nil
}

func (o *oraclePath) release(t int64, u *bufferUse) (int64, error) {
	r := u.need.rng.PageAligned()
	until := t + o.costs.Deregister.Ns(r.Pages())
	o.pages.Unpin(until+o.lateNs, r)
	o.until[r] = until
	return 0, nil
}

func (o *oraclePath) transferring(*bufferUse, int64, int64) {}

// unmapped changes nothing: where a buffer ends, the bound has let go of it, or is about to.
func (o *oraclePath) unmapped(int64, mem.Range) (int64, error) { return 0, nil }

// scaledOracle is the bound of one rank on a timeline that is stretched.
type scaledOracle struct {
	oraclePath
	scale float64
	now   int64
	usage usage.Usage
}

func newScaledOracle(o *Options, scale float64, largestPages uint64) *scaledOracle {
	s := &scaledOracle{scale: scale}
	late := o.Costs.Register.Ns(largestPages)
	s.usage = usage.New(o.SeriesFromNs, o.SeriesToNs)
	s.usage.LateNs = late
	p := pinned.NewCounter(&s.now, nil)
	p.AddUsage(&s.usage)
	s.oraclePath = oraclePath{costs: o.Costs, pages: p, stats: &Counts{}, lateNs: late, until: map[mem.Range]int64{}}
	return s
}

// advance brings the accounts to a time of the trace.
func (s *scaledOracle) advance(t int64) int64 {
	t = int64(float64(t) * s.scale)
	for s.pages.NextNs() <= t {
		s.now = s.pages.NextNs()
		s.pages.Apply()
	}
	s.now = t
	return t
}

func (s *scaledOracle) acquire(t int64, n *need, u *bufferUse) (int64, error) {
	return s.oraclePath.acquire(s.advance(t), n, u)
}

func (s *scaledOracle) release(t int64, u *bufferUse) (int64, error) {
	return s.oraclePath.release(s.advance(t), u)
}

// finish closes the accounts at the rank's end.
func (s *scaledOracle) finish(endNs int64) Result {
	end := s.advance(endNs)
	s.usage.EndNs = end
	for s.pages.NextNs() < never {
		s.now = s.pages.NextNs()
		s.pages.Apply()
	}
	mean := s.usage.Close(end)
	return Result{RunNs: end, AvgPinnedBytes: mean, PeakPinnedBytes: s.usage.Peak()}
}
