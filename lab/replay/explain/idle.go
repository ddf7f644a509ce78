package explain

import (
	"cmp"
	"slices"

	"pinwheel/lab/replay"
	"pinwheel/mem"
)

// span is a stretch of time.
type span struct{ from, to int64 }

// history is what is known of one region of one rank.
type history struct {
	id        mem.RegionID
	uses      []replay.RegionUse // by NeedNs
	busy      []span             // in which it was in use: the union of uses
	forecasts []replay.Forecast  // by MadeNs
	regs      []replay.Registration
}

// histories sorts a journal by region.
func histories(j *replay.Journal) (all map[mem.RegionID]*history) {
	all = map[mem.RegionID]*history{}
	of := func(id mem.RegionID) *history {
		if all[id] == nil {
			all[id] = &history{id: id}
		}
		return all[id]
	}
	for _, u := range j.Uses {
		of(u.Region).uses = append(of(u.Region).uses, u)
	}
	for _, f := range j.Forecasts {
		of(f.Region).forecasts = append(of(f.Region).forecasts, f)
	}
	for _, r := range j.Registrations {
		of(r.Region).regs = append(of(r.Region).regs, r)
	}
	for _, h := range all {
		slices.SortStableFunc(h.uses, func(a, b replay.RegionUse) int { return cmp.Compare(a.NeedNs, b.NeedNs) })
		for _, u := range h.uses {
			if n := len(h.busy); n > 0 && u.NeedNs <= h.busy[n-1].to {
				h.busy[n-1].to = max(h.busy[n-1].to, u.EndNs)
				continue
			}
			h.busy = append(h.busy, span{u.NeedNs, u.EndNs})
		}
	}
	return all
}

// gap is the time between two busy stretches of a region: from the end of the use before it, replay.Never if there was
// none, to the need after it, replay.Never if there is none.
type gap struct{ endNs, needNs int64 }

// gapAt returns the gap before busy stretch i, or after the last.
func (h *history) gapAt(i int) gap {
	g := gap{replay.Never, replay.Never}
	if i > 0 {
		g.endNs = h.busy[i-1].to
	}
	if i < len(h.busy) {
		g.needNs = h.busy[i].from
	}
	return g
}

// busyAt returns the first busy stretch that ends at a time or later.
func (h *history) busyAt(t int64) int {
	i, _ := slices.BinarySearchFunc(h.busy, t, func(b span, t int64) int { return cmp.Compare(b.to, t) })
	return i
}

// cut cuts the time in which a registration was there into stretches in which its region was in use, and idle ones with
// the gap that they lie in.
func (h *history) cut(r *replay.Registration, inUse func(span), idle func(span, gap)) {
	from := r.BeganNs
	for i := h.busyAt(from); i < len(h.busy) && h.busy[i].from < r.GoneNs; i++ {
		b := h.busy[i]
		if b.from > from {
			idle(span{from, b.from}, h.gapAt(i))
		}
		inUse(span{max(from, b.from), min(b.to, r.GoneNs)})
		from = max(from, b.to)
	}
	if from < r.GoneNs {
		idle(span{from, r.GoneNs}, h.gapAt(h.busyAt(r.GoneNs)))
	}
}

// after returns the index of the first forecast that was made after a time.
func (h *history) after(t int64) (int, bool) {
	return slices.BinarySearchFunc(h.forecasts, t, func(f replay.Forecast, t int64) int {
		if f.MadeNs <= t {
			return -1
		}
		return 1
	})
}

// forecastAt returns the forecast in force at a time; ok is false if there was none yet.
func (h *history) forecastAt(t int64) (f replay.Forecast, ok bool) {
	if i, _ := h.after(t); i > 0 {
		return h.forecasts[i-1], true
	}
	return f, false
}
