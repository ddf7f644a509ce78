package main

import (
	"cmp"
	"fmt"
	"strings"

	"pinwheel/internal/settings"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// regime gives helpers what they would get live on the machine of the trace, unless flags say what, and says so, for
// people.
func (m *model) regime(o *replay.Options, f *trace.File) (string, error) {
	p, err := placeOf(f)
	if err != nil {
		return "", err
	}
	text := m.helpersAt(o, p)
	if o.WatchNs = m.watchNs(p.WatchNs); o.WatchNs > 0 {
		text += fmt.Sprintf("; nothing is kept in the first %s", formatNs(o.WatchNs))
	}
	return text, nil
}

// helpersAt sets the share of helpers at a place.
func (m *model) helpersAt(o *replay.Options, p trace.Place) string {
	live := settings.Default().Cost
	on := fmt.Sprintf("%d ranks had %d processors", p.Ranks, p.Processors)
	switch {
	case m.IdleCores != nil:
		return fmt.Sprintf("share %d idle cores a node", *m.IdleCores)
	case o.HelperShare > 0 && o.HelperShare < 1:
		return fmt.Sprintf("none: uses on demand, for at most %s of the time of their rank", onDemandCost(o))
	case o.HelperShare > 0 || m.Workers > 1:
		return "on cores of their own"
	case p.Processors == 0:
		return "on cores of their own; the trace does not say what its machine had (without idle cores: --helper-share " +
			share(live) + ")"
	case p.Processors >= 2*p.Ranks:
		return "on cores of their own; in the trace, " + on
	}
	o.HelperShare = live
	return fmt.Sprintf("none: uses on demand, for at most %s of the time of their rank; in the trace, %s (cores of their own: --helper-share 100%%)",
		onDemandCost(o), on)
}

// onDemandCost is what uses on demand may cost if no core is idle.
func onDemandCost(o *replay.Options) string {
	if len(o.CostCurve) == 0 {
		return share(cmp.Or(o.Cost, o.HelperShare))
	}
	var texts []string
	for _, cost := range o.CostCurve {
		texts = append(texts, share(cost))
	}
	return strings.Join(texts, ", ")
}

// placeOf returns the processors and the ranks of the node that has the fewest for a rank, and how long it took
// at most until changes of mappings were noticed; zeros if that is not known of any rank.
func placeOf(f *trace.File) (all trace.Place, err error) {
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			return all, err
		}
		p := rr.Place()
		all.WatchNs = max(all.WatchNs, p.WatchNs)
		if p.Ranks > 0 && p.Processors > 0 && (all.Processors == 0 || p.Processors*all.Ranks < all.Processors*p.Ranks) {
			all.Processors, all.Ranks = p.Processors, p.Ranks
		}
	}
	return all, nil
}

func share(v float64) string { return fmt.Sprintf("%g%%", 100*v) }

// unseen says what a trace can't know.
func unseen(f *trace.File) (lines []string, err error) {
	all, err := f.Unseen()
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		line := "not in the trace: "
		if u.Times > 0 {
			line += fmt.Sprintf("%d ", u.Times)
		}
		if line += u.What; u.Bytes > 0 {
			line += fmt.Sprintf(", of %s at one time", mem.FormatBytes(u.Bytes))
		}
		lines = append(lines, line)
	}
	return lines, nil
}
