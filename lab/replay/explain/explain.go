package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"pinwheel/internal/report"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/schedule"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// Shares are parts of the possible saving: what leave-pinned pins on average and the clairvoyant bound does not, of
// all ranks together. Negative ones are won.
type Shares [Causes]float64

// Sum is what was missed in all.
func (s *Shares) Sum() (sum float64) {
	for _, v := range s {
		sum += v
	}
	return sum
}

// MarshalJSON writes an object with the Key of each cause.
func (s Shares) MarshalJSON() ([]byte, error) {
	m := map[string]float64{}
	for c, v := range s {
		m[Cause(c).Key()] = v
	}
	return json.Marshal(m)
}

// Region is what was missed with one region of one rank.
type Region struct {
	Rank        int          `json:"rank"`
	ID          mem.RegionID `json:"region"`
	Range       mem.Range    `json:"-"` // of its last registration
	Bytes       uint64       `json:"bytes"`
	Uses        int          `json:"uses"`
	Late        int          `json:"late"`   // uses after the first, as replay.Counts.LateUses
	MissedShare Shares       `json:"causes"` // of the possible saving of all ranks
}

// Explanation says where the possible saving of a trace went.
type Explanation struct {
	Result        replay.Result // of policy pinwheel, all ranks
	PossibleBytes float64       // what the bound saves on average
	Missed        Shares
	Regions       []Region // those with which most was missed first

	journals []*replay.Journal
	options  replay.Options
}

// Cost is what policy pinwheel has cost all ranks beside leave-pinned, as the report of a job has it.
func (x *Explanation) Cost() report.Cost {
	r := &x.Result
	c := report.Cost{
		Share:   cmp.Or(r.Cost, schedule.DefaultCost),
		AgainNs: r.AgainNs, WaitNs: r.WaitNs, DemandNs: r.DemandNs, PriceNs: r.PriceNs,
	}
	if r.HelperShare > 0 && r.HelperShare < 1 {
		c.Share = r.HelperShare
	}
	return c
}

// MarshalJSON writes what the command prints.
func (x *Explanation) MarshalJSON() ([]byte, error) {
	r := &x.Result
	return json.Marshal(struct {
		Trace         string          `json:"trace"`
		Policy        string          `json:"policy"`
		Provider      string          `json:"provider"`
		Timeline      replay.Timeline `json:"timeline"`
		CapturedAvg   *float64        `json:"captured_avg"`
		PossibleBytes float64         `json:"possible_bytes"`
		Cost          report.Cost     `json:"cost"`
		Missed        float64         `json:"missed"`
		Causes        Shares          `json:"causes"`
		Regions       []Region        `json:"regions"`
	}{r.Trace, r.Policy, r.Provider, r.Timeline, r.CapturedAvg, x.PossibleBytes, x.Cost(), x.Missed.Sum(), x.Missed, x.Regions})
}

// Trace replays a trace under policy pinwheel and says where the possible saving went. It keeps every
// registration and prediction in memory: some 100 bytes for each.
func Trace(ctx context.Context, o replay.Options, f *trace.File) (*Explanation, error) {
	o.EnsureDefaults()
	o.Policies = []string{replay.LeavePinned, replay.Pinwheel, replay.Oracle}
	x := &Explanation{journals: make([]*replay.Journal, f.Header().Ranks)}
	var mu sync.Mutex // protects x.journals
	o.Journal = func(policy string, rank int) *replay.Journal {
		if policy != replay.Pinwheel {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		x.journals[rank] = replay.NewJournal()
		return x.journals[rank]
	}
	rs, err := replay.Compare(ctx, o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Header().Program, err)
	}
	x.options = o
	x.add(rs)
	return x, nil
}

// add adds up all ranks.
func (x *Explanation) add(rs []replay.Result) {
	of := func(policy string, rank int) *replay.Result {
		return &rs[slices.IndexFunc(rs, func(r replay.Result) bool { return r.Policy == policy && r.Rank == rank && r.Node == nil })]
	}
	x.Result = *of(replay.Pinwheel, replay.AllRanks)
	x.PossibleBytes = of(replay.LeavePinned, replay.AllRanks).AvgPinnedBytes - of(replay.Oracle, replay.AllRanks).AvgPinnedBytes
	if x.PossibleBytes == 0 {
		return
	}
	for rank, j := range x.journals {
		all := histories(j)
		ids := slices.Sorted(maps.Keys(all))
		a := account{}
		for i, id := range ids {
			a.region(all[id], int32(i), &x.options, j.EndNs)
		}
		a.settle(len(ids))
		perByteNs := 1 / x.PossibleBytes / float64(max(j.EndNs, 1))
		for i, id := range ids {
			r := regionOf(all[id], rank)
			for c, lost := range a.lost[i] {
				r.MissedShare[c] = lost * perByteNs
				x.Missed[c] += r.MissedShare[c]
			}
			x.Regions = append(x.Regions, r)
		}
		x.Missed[Stalls] += a.bound*perByteNs - of(replay.Oracle, rank).AvgPinnedBytes/x.PossibleBytes
	}
	slices.SortStableFunc(x.Regions, func(a, b Region) int {
		return cmp.Or(cmp.Compare(b.MissedShare.Sum(), a.MissedShare.Sum()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
}

// region adds what the policy pins for one region, and what the bound would pin for its uses.
func (a *account) region(h *history, index int32, o *replay.Options, endNs int64) {
	for _, u := range h.uses {
		pages := u.Range.Pages()
		a.add(span{u.NeedNs - o.Costs.Register.Ns(pages), u.EndNs + o.Costs.Deregister.Ns(pages)}, u.Range, byBound, index, endNs)
	}
	for i := range h.regs {
		r := &h.regs[i]
		h.cut(r, func(s span) { a.add(s, r.Range, inUse, index, endNs) }, func(s span, g gap) {
			h.tellCauses(r, s, g, cycleNs(&o.Costs, r.Range, o.DQItemNs+o.RQItemNs), func(s span, c Cause) {
				a.add(s, r.Range, layer(c), index, endNs)
			})
		})
	}
}

// cycleNs is what a release and the registration after it take.
func cycleNs(c *verbs.Costs, r mem.Range, itemNs int64) int64 {
	return c.Register.Ns(r.Pages()) + c.Deregister.Ns(r.Pages()) + 2*itemNs
}

func regionOf(h *history, rank int) Region {
	r := Region{Rank: rank, ID: h.id, Uses: len(h.uses)}
	for i, u := range h.uses {
		r.Range = r.Range.Union(u.Range)
		if (u.Missed || u.Waited) && i > 0 {
			r.Late++
		}
	}
	for _, g := range h.regs {
		r.Range = g.Range
	}
	r.Bytes = r.Range.Len()
	return r
}
