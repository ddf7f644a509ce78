package replay

import (
	"slices"

	"pinwheel/mem"
)

// seenRanges remembers which ranges were needed, to tell a first use from a
// later one: a need is a first use if no single range that was needed before
// contains it, which is when policy leave-pinned has to register.
type seenRanges struct {
	maximal []mem.Range // none contains another; ascending by start, so by end too
}

// first reports whether r is a first use, and remembers it.
func (s *seenRanges) first(r mem.Range) bool {
	// Of the ranges that begin at r.Start or before, the last reaches farthest.
	i, _ := slices.BinarySearchFunc(s.maximal, r.Start, func(m mem.Range, a mem.Addr) int {
		if m.Start <= a {
			return -1
		}
		return 1
	})
	if i > 0 && s.maximal[i-1].Contains(r) {
		return false
	}
	if i > 0 && s.maximal[i-1].Start == r.Start {
		i--
	}
	j := i
	for j < len(s.maximal) && r.Contains(s.maximal[j]) {
		j++
	}
	s.maximal = slices.Replace(s.maximal, i, j, r)
	return true
}
