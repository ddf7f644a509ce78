package mem

import (
	"iter"
	"slices"
)

// Set is a set of addresses, kept as the fewest ranges that hold them: disjoint, never
// adjacent, ascending. The zero value is empty. A Set is not safe for concurrent use, and a
// copy shares memory with the original.
//
// A look-up is a binary search; Add and Remove also move the ranges that follow.
type Set struct{ ranges []Range }

// NewSet returns the set of r's addresses.
func NewSet(r Range) Set {
	var s Set
	s.Add(r)
	return s
}

// after returns the index of the first range that ends after a.
func (s *Set) after(a Addr) int {
	if n := len(s.ranges); n == 0 || s.ranges[n-1].End <= a {
		return n // sets often grow upwards
	}
	i, _ := slices.BinarySearchFunc(s.ranges, a, func(r Range, a Addr) int {
		if r.End <= a {
			return -1
		}
		return 1
	})
	return i
}

// Contains reports whether every address of r is in the set. As for Range.Contains, an empty r
// is not.
func (s *Set) Contains(r Range) bool {
	i := s.after(r.Start)
	return i < len(s.ranges) && s.ranges[i].Contains(r)
}

// Within returns the smallest range that has all addresses of r that are in the set; an empty one if none is.
func (s *Set) Within(r Range) Range {
	if r.Empty() {
		return Range{}
	}
	from := s.after(r.Start)
	to, _ := slices.BinarySearchFunc(s.ranges, r.End, func(o Range, end Addr) int {
		if o.Start < end {
			return -1
		}
		return 1
	})
	if from >= to {
		return Range{}
	}
	return Range{max(r.Start, s.ranges[from].Start), min(r.End, s.ranges[to-1].End)}
}

// Add puts r into the set.
func (s *Set) Add(r Range) {
	if r.Empty() {
		return
	}
	if n := len(s.ranges); n == cap(s.ranges) { // append would add a quarter to a long one, and copy more
		s.ranges = slices.Grow(s.ranges, n+1)
	}
	if n := len(s.ranges); n == 0 || s.ranges[n-1].End < r.Start {
		s.ranges = append(s.ranges, r)
		return
	}
	from := s.after(r.Start)
	if from < len(s.ranges) && s.ranges[from].Contains(r) {
		return
	}
	if from > 0 && s.ranges[from-1].End == r.Start {
		from--
	}
	to := from
	for to < len(s.ranges) && s.ranges[to].Start <= r.End {
		r = r.Union(s.ranges[to])
		to++
	}
	s.ranges = slices.Replace(s.ranges, from, to, r)
}

// Remove takes r out of the set.
func (s *Set) Remove(r Range) {
	if r.Empty() {
		return
	}
	from := s.after(r.Start)
	to := from
	for to < len(s.ranges) && s.ranges[to].Start < r.End {
		to++
	}
	if from == to {
		return
	}
	left := Range{s.ranges[from].Start, r.Start}
	right := Range{r.End, s.ranges[to-1].End}
	switch {
	case left.Empty() && right.Empty():
		s.ranges = slices.Delete(s.ranges, from, to)
	case right.Empty():
		s.ranges = slices.Replace(s.ranges, from, to, left)
	case left.Empty():
		s.ranges = slices.Replace(s.ranges, from, to, right)
	default:
		s.ranges = slices.Replace(s.ranges, from, to, left, right)
	}
}

// All yields the ranges of the set in ascending order. The set must not change meanwhile.
func (s *Set) All() iter.Seq[Range] { return slices.Values(s.ranges) }

// Bytes returns the number of addresses in the set.
func (s *Set) Bytes() (n uint64) {
	for _, r := range s.ranges {
		n += r.Len()
	}
	return n
}
