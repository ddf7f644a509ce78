package predictor

import (
	"math"
	"slices"
)

// gapMemory is how many of the most recent gaps a context remembers for a
// region: enough to see the low end of the jitter, few enough to follow a
// program whose phases change in length.
const gapMemory = 32

// gaps holds the most recent gaps, in nanoseconds, between events of one
// context and the next need of one region. The zero value is empty.
type gaps struct {
	ns            [gapMemory]int64
	lowNs, highNs int64 // the shortest and the longest of ns
	n             int   // gaps ever added
}

// add appends a gap; a negative one (uses overlapped) counts as zero.
func (g *gaps) add(ns int64) {
	ns = max(ns, 0)
	slot := &g.ns[g.n%gapMemory]
	old := *slot
	*slot = ns
	g.n++
	switch {
	case g.n == 1:
		g.lowNs, g.highNs = ns, ns
		return
	case g.n > gapMemory && (old == g.lowNs && ns > old || old == g.highNs && ns < old):
		g.lowNs, g.highNs = slices.Min(g.ns[:]), slices.Max(g.ns[:]) // the shortest or longest was overwritten
	}
	g.lowNs, g.highNs = min(g.lowNs, ns), max(g.highNs, ns)
}

// recent returns the remembered gaps, in no particular order.
func (g *gaps) recent() []int64 { return g.ns[:min(g.n, gapMemory)] }

// median returns the lower median of the remembered gaps, 0 if there are none.
func (g *gaps) median() int64 {
	var buf [gapMemory]int64
	s := buf[:copy(buf[:], g.recent())]
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[(len(s)-1)/2]
}

// spread returns how far apart the remembered gaps lie, and MaxInt64 for fewer than
// two.
func (g *gaps) spread() int64 {
	if g.n < 2 {
		return math.MaxInt64
	}
	return g.highNs - g.lowNs
}
