package predictor

import (
	"bytes"
	"slices"
)

// gapMemory is how many of the most recent gaps a context remembers for a
// region: enough to see the low end of the jitter, few enough to follow a
// program whose phases change in length.
const gapMemory = 32

// gaps holds the most recent gaps, in nanoseconds. The zero value is empty.
type gaps struct {
	ns    [gapMemory]int64 // a ring
	order [gapMemory]uint8 // places in ns, the shortest gap first
	n     int              // gaps ever added

	// unsure is how many gaps are to come until those of another run are checked by them (seed.go).
	unsure int
}

// add appends a gap; a negative one (uses overlapped) counts as zero.
func (g *gaps) add(ns int64) {
	ns = max(ns, 0)
	have, place := g.len(), uint8(g.n%gapMemory)
	if have == gapMemory {
		i := bytes.IndexByte(g.order[:], place)
		copy(g.order[i:], g.order[i+1:])
		have--
	}
	i, end := 0, have
	for i < end { // sort.Search, inlined
		if middle := (i + end) / 2; g.at(middle) < ns {
			i = middle + 1
		} else {
			end = middle
		}
	}
	copy(g.order[i+1:have+1], g.order[i:have])
	g.order[i] = place
	g.ns[place] = ns
	g.n++
	if g.unsure > 0 {
		if g.unsure--; g.unsure == 0 {
			g.forgetShorter(ownGaps)
		}
	}
}

// len returns how many gaps are remembered.
func (g *gaps) len() int { return min(g.n, gapMemory) }

// at returns the remembered gap before which i shorter ones come.
func (g *gaps) at(i int) int64 { return g.ns[g.order[i]] }

// shortest and longest are of the remembered gaps, 0 if there are none.
func (g *gaps) shortest() int64 { return g.at(0) }
func (g *gaps) longest() int64  { return g.at(max(g.len(), 1) - 1) }

// latest returns up to n of the gaps, the latest ones, oldest first.
func (g *gaps) latest(n int) []int64 {
	n = min(n, g.n, gapMemory)
	ns := make([]int64, n)
	for i := range ns {
		ns[i] = g.ns[(g.n-n+i)%gapMemory]
	}
	return ns
}

// forgetShorter forgets the gaps that are shorter than the latest n.
func (g *gaps) forgetShorter(n int) {
	all := g.latest(gapMemory)
	if len(all) <= n {
		return
	}
	leastNs := slices.Min(all[len(all)-n:])
	*g = gaps{}
	for _, ns := range all {
		if ns >= leastNs {
			g.add(ns)
		}
	}
}

// median returns the lower median of the remembered gaps, 0 if there are none.
func (g *gaps) median() int64 {
	if g.n == 0 {
		return 0
	}
	return g.at((g.len() - 1) / 2)
}
