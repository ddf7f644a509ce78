package predictor

import "slices"

// gapMemory is how many of the most recent gaps a context remembers for a
// region: enough to see the low end of the jitter, few enough to follow a
// program whose phases change in length.
const gapMemory = 32

// gaps holds the most recent gaps, in nanoseconds. The zero value is empty.
type gaps struct {
	ns     [gapMemory]int64 // a ring
	sorted [gapMemory]int64
	n      int // gaps ever added
}

// add appends a gap; a negative one (uses overlapped) counts as zero.
func (g *gaps) add(ns int64) {
	ns = max(ns, 0)
	have := min(g.n, gapMemory)
	s := g.sorted[:have]
	if have == gapMemory {
		i, _ := slices.BinarySearch(s, g.ns[g.n%gapMemory])
		copy(s[i:], s[i+1:])
		have--
	}
	i, _ := slices.BinarySearch(s[:have], ns)
	s = g.sorted[:have+1]
	copy(s[i+1:], s[i:have])
	s[i] = ns
	g.ns[g.n%gapMemory] = ns
	g.n++
}

// recent returns the remembered gaps, the shortest first.
func (g *gaps) recent() []int64 { return g.sorted[:min(g.n, gapMemory)] }

// shortest and longest are of the remembered gaps, 0 if there are none.
func (g *gaps) shortest() int64 { return g.sorted[0] }
func (g *gaps) longest() int64  { return g.sorted[max(min(g.n, gapMemory), 1)-1] }

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
	s := g.recent()
	if len(s) == 0 {
		return 0
	}
	return s[(len(s)-1)/2]
}
