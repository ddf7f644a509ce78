package main

import (
	"fmt"

	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/replay"
	"pinwheel/trace"
)

// regime gives helpers what they would get live on the machine of the trace, unless a flag says what, and says so, for
// people.
func (m *model) regime(o *replay.Options, f *trace.File) (string, error) {
	switch {
	case m.IdleCores != nil:
		return fmt.Sprintf("share %d idle cores a node", *m.IdleCores), nil
	case o.HelperShare > 0 && o.HelperShare < 1:
		return fmt.Sprintf("within %s of the core of their rank", share(o.HelperShare)), nil
	case o.HelperShare > 0 || m.Workers > 1:
		return "on cores of their own", nil
	}
	fullest, known, err := fullestPlace(f)
	live := settings.Default().HelperShare
	switch {
	case err != nil:
		return "", err
	case !known:
		return fmt.Sprintf("on cores of their own; the trace does not say what its machine had (without idle cores: --helper-share %s)",
			share(live)), nil
	}
	on := fmt.Sprintf("%d ranks had %d processors", fullest.Ranks, fullest.Processors)
	if fullest.Processors >= 2*fullest.Ranks {
		return fmt.Sprintf("on cores of their own; in the trace, %s", on), nil
	}
	o.HelperShare = live
	return fmt.Sprintf("within %s of the core of their rank; in the trace, %s (cores of their own: --helper-share 100%%)", share(live), on), nil
}

// fullestPlace returns the place with the fewest processors for a rank. known is false if no rank's is known.
func fullestPlace(f *trace.File) (fullest trace.Place, known bool, err error) {
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			return fullest, false, err
		}
		p := rr.Place()
		if p.Ranks > 0 && p.Processors > 0 && (!known || p.Processors*fullest.Ranks < fullest.Processors*p.Ranks) {
			fullest, known = p, true
		}
	}
	return fullest, known, nil
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
