package mem

import (
	"math/bits"
	"slices"
)

// Index finds values by the ranges that they were added with, which may overlap or be equal. A range of class k is at most
// 2^k bytes long and listed for the one or two blocks of 2^k bytes that it touches, so a look-up depends on what
// overlaps, not on how many there are. The zero value is empty. It is not safe for concurrent use.
type Index[T comparable] struct {
	in      map[block][]indexed[T]
	classes [64]int // how many ranges there are of each
}

type block struct {
	class  int
	number Addr
}

type indexed[T comparable] struct {
	r     Range
	value T
}

func classOf(r Range) int { return bits.Len64(r.Len() - 1) }

// Add adds a value that isn't in x.
func (x *Index[T]) Add(r Range, value T) {
	if x.in == nil {
		x.in = map[block][]indexed[T]{}
	}
	k := classOf(r)
	x.classes[k]++
	for at := r.Start >> k; at <= (r.End-1)>>k; at++ {
		x.in[block{k, at}] = append(x.in[block{k, at}], indexed[T]{r, value})
	}
}

// Remove removes a value that was added with r.
func (x *Index[T]) Remove(r Range, value T) {
	k := classOf(r)
	x.classes[k]--
	for at := r.Start >> k; at <= (r.End-1)>>k; at++ {
		left := slices.DeleteFunc(x.in[block{k, at}], func(o indexed[T]) bool { return o.value == value })
		if x.in[block{k, at}] = left; len(left) == 0 {
			delete(x.in, block{k, at})
		}
	}
}

// Overlapping calls do for those that have an address of r, some of them twice. do must not change x.
func (x *Index[T]) Overlapping(r Range, do func(T)) {
	some := func(list []indexed[T]) {
		for _, o := range list {
			if o.r.Overlaps(r) {
				do(o.value)
			}
		}
	}
	for k, n := range x.classes {
		switch first, last := r.Start>>k, (r.End-1)>>k; {
		case n == 0:
		case last-first > Addr(len(x.in)): // more blocks than lists
			for b, list := range x.in {
				if b.class == k {
					some(list)
				}
			}
		default:
			for at := first; at <= last; at++ {
				some(x.in[block{k, at}])
			}
		}
	}
}
