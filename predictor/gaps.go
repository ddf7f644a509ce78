package predictor

import (
	"bytes"
	"slices"
)

// gapMemory is how many of the most recent gaps a context remembers for a
// region: enough to see the low end of the jitter, few enough to follow a
// program whose phases change in length.
const gapMemory = 32

// gaps holds the most recent gaps, in nanoseconds. The zero value is empty. There are several of them for each region,
// so a gap is no more than 4 bytes: it is exact up to 16 ms, and to a few parts in a hundred million beyond.
type gaps struct {
	ns   [gapMemory]float32 // the shortest first
	turn [gapMemory]uint8   // how many were added before each of them, modulo gapMemory
	n    int                // gaps ever added

	// unsure is how many gaps are to come until those of another run are checked by them (training.go).
	unsure int
}

// add appends a gap; a negative one (uses overlapped) counts as zero.
func (g *gaps) add(ns int64) {
	gap, turn := float32(max(ns, 0)), uint8(g.n%gapMemory)
	g.n++
	last, i := g.len()-1, g.len()-1
	if g.n > gapMemory {
		i = bytes.IndexByte(g.turn[:], turn) // in place of the oldest
	}
	for ; i > 0 && g.ns[i-1] > gap; i-- {
		g.ns[i], g.turn[i] = g.ns[i-1], g.turn[i-1]
	}
	for ; i < last && g.ns[i+1] < gap; i++ {
		g.ns[i], g.turn[i] = g.ns[i+1], g.turn[i+1]
	}
	g.ns[i], g.turn[i] = gap, turn
	if g.unsure > 0 {
		if g.unsure--; g.unsure == 0 {
			g.forgetShorter(ownGaps)
		}
	}
}

// len returns how many gaps are remembered.
func (g *gaps) len() int { return min(g.n, gapMemory) }

// at returns the remembered gap before which i shorter ones come.
func (g *gaps) at(i int) int64 { return int64(g.ns[i]) }

// shortest and longest are of the remembered gaps, 0 if there are none.
func (g *gaps) shortest() int64 { return g.at(0) }
func (g *gaps) longest() int64  { return g.at(max(g.len(), 1) - 1) }

// latest returns up to n of the gaps, the latest ones, oldest first.
func (g *gaps) latest(n int) []int64 {
	n = min(n, g.n, gapMemory)
	ns := make([]int64, n)
	for i := range g.len() {
		if before := (g.n - 1 - int(g.turn[i])) % gapMemory; before < n {
			ns[n-1-before] = g.at(i)
		}
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
