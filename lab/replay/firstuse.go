package replay

import (
	"slices"

	"pinwheel/mem"
)

// FirstUses tells a first use from a later one. A use is a first one if no
// single range that was used before contains its range: then policy leave-pinned
// has to register it.
type FirstUses struct {
	maximal []mem.Range // none contains another; ascending by start, so by end too
}

// Forget drops what is known of uses of r: the next one of any part of it is a first one.
func (s *FirstUses) Forget(r mem.Range) {
	var cut []mem.Range
	s.maximal = slices.DeleteFunc(s.maximal, func(m mem.Range) bool {
		if m.Overlaps(r) {
			cut = append(cut, m)
			return true
		}
		return false
	})
	for _, m := range cut {
		rest := mem.NewSet(m)
		rest.Remove(r)
		for left := range rest.All() {
			s.IsFirst(left)
		}
	}
}

// IsFirst reports whether a use of r is a first one, and remembers r.
func (s *FirstUses) IsFirst(r mem.Range) bool {
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
