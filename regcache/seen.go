package regcache

import (
	"slices"

	"pinwheel/mem"
)

// seen is a set of addresses, as disjoint ranges in order: those registered
// at least once since they were mapped.
type seen []mem.Range

// first returns the index of the first range that ends after a.
func (s seen) first(a mem.Addr) int {
	i, _ := slices.BinarySearchFunc(s, a, func(r mem.Range, a mem.Addr) int {
		if r.End <= a {
			return -1
		}
		return 1
	})
	return i
}

// contains reports whether all of r is in the set.
func (s seen) contains(r mem.Range) bool {
	i := s.first(r.Start)
	return i < len(s) && s[i].Contains(r)
}

// add puts r into the set.
func (s *seen) add(r mem.Range) {
	if s.contains(r) {
		return
	}
	from := s.first(r.Start)
	if from > 0 && (*s)[from-1].End == r.Start {
		from--
	}
	to := from
	for to < len(*s) && (*s)[to].Start <= r.End {
		r = r.Union((*s)[to])
		to++
	}
	*s = slices.Replace(*s, from, to, r)
}

// remove takes r out of the set.
func (s *seen) remove(r mem.Range) {
	from := s.first(r.Start)
	to := from
	var rest []mem.Range
	for to < len(*s) && (*s)[to].Start < r.End {
		if g := (*s)[to]; g.Start < r.Start {
			rest = append(rest, mem.Range{Start: g.Start, End: r.Start})
		}
		if g := (*s)[to]; g.End > r.End {
			rest = append(rest, mem.Range{Start: r.End, End: g.End})
		}
		to++
	}
	*s = slices.Replace(*s, from, to, rest...)
}
