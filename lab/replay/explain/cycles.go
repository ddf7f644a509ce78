package explain

import (
	"fmt"

	"pinwheel/lab/replay"
	"pinwheel/mem"
)

// Cycle is one use of a region, with how its memory came to be registered, and how it was given back after the use
// before. Uses that overlap are one. Times are those of the replay, in nanoseconds.
type Cycle struct {
	Use    int   `json:"use"`     // from 1
	NeedNs int64 `json:"need_ns"` // when the communication path asked for it
	EndNs  int64 `json:"end_ns"`  // when it gave it back
	// Missed: the communication path had to register it, although Predicted may be true.
	Missed bool `json:"missed"`

	// What was predicted when the need came. DeadlineNs is when the region was to be ready, ExpectedNs when the need was
	// expected, both from MadeNs on; Gaps is how many gaps that rests on.
	Predicted  bool  `json:"predicted"`
	MadeNs     int64 `json:"made_ns,omitempty"`
	DeadlineNs int64 `json:"deadline_ns,omitempty"`
	ExpectedNs int64 `json:"expected_ns,omitempty"`
	Gaps       int   `json:"gaps,omitempty"`
	Gated      bool  `json:"gated,omitempty"` // the event that announces the need had not come: no deadline was in force

	// The deregistration after the use before; both 0 if there was none.
	ReleaseNs int64 `json:"release_ns,omitempty"`
	GoneNs    int64 `json:"gone_ns,omitempty"`
	// The registration for this use; both 0 if the region was still registered.
	RegisterNs int64 `json:"register_ns,omitempty"`
	ReadyNs    int64 `json:"ready_ns,omitempty"`
	Wasted     int   `json:"wasted,omitempty"` // registrations in between that were released without a use

	// IdleNs is how long the region was registered since the use before, and Why the cause of the most of
	// that; some of it the bound has, too.
	IdleNs int64  `json:"idle_ns"`
	Why    string `json:"why,omitempty"`
}

// Cycles returns the uses of a region of a rank, in order.
func (x *Explanation) Cycles(rank int, id mem.RegionID) ([]Cycle, error) {
	if rank < 0 || rank >= len(x.journals) {
		return nil, fmt.Errorf("%s has no rank %d", x.Result.Trace, rank)
	}
	h := histories(x.journals[rank])[id]
	if h == nil || id == 0 || len(h.busy) == 0 {
		return nil, fmt.Errorf("rank %d of %s has no region %d", rank, x.Result.Trace, id)
	}
	cycles := make([]Cycle, len(h.busy))
	next := 0 // of h.uses
	for i, b := range h.busy {
		c := &cycles[i]
		c.Use, c.NeedNs, c.EndNs = i+1, b.from, b.to
		for ; next < len(h.uses) && h.uses[next].NeedNs <= b.to; next++ {
			c.Missed = c.Missed || h.uses[next].Missed
		}
		if f, ok := h.forecastAt(b.from); ok && f.Predicted {
			c.Predicted, c.MadeNs, c.DeadlineNs, c.ExpectedNs = true, f.MadeNs, f.NextNs, f.ExpectedNs
			c.Gaps, c.Gated = gapsOf(f.Confidence), f.Gated
		}
	}
	spent := make([][Causes]int64, len(h.busy))
	for i := range h.regs {
		h.fill(cycles, spent, &h.regs[i], &x.options)
	}
	for i := range cycles {
		most := 0
		for k, ns := range spent[i] {
			cycles[i].IdleNs += ns
			if ns > spent[i][most] {
				most = k
			}
		}
		if cycles[i].IdleNs > 0 {
			cycles[i].Why = Cause(most).String()
		}
	}
	return cycles, nil
}

// fill adds one registration to the cycles.
func (h *history) fill(cycles []Cycle, spent [][Causes]int64, r *replay.Registration, o *replay.Options) {
	of := h.busyAt(r.BeganNs) // the use that it was for
	if of < len(cycles) && r.GoneNs > h.busy[of].from && r.BeganNs <= h.busy[of].to {
		cycles[of].RegisterNs, cycles[of].ReadyNs = r.BeganNs, r.ReadyNs
	}
	if of < len(cycles) && r.GoneNs <= h.busy[of].from {
		cycles[of].Wasted++
	} else if r.GoneNs != replay.Never {
		if next := h.busyAt(r.GoneNs); next < len(cycles) {
			cycles[next].ReleaseNs, cycles[next].GoneNs = r.ReleaseNs, r.GoneNs
		}
	}
	h.cut(r, func(span) {}, func(s span, g gap) {
		i := h.busyAt(s.from + 1)
		if i == len(cycles) {
			return
		}
		h.tellCauses(r, s, g, cycleNs(&o.Costs, r.Range, o.DQItemNs+o.RQItemNs), func(s span, c Cause) {
			spent[i][c] += max(0, s.to-s.from)
		})
	})
}
