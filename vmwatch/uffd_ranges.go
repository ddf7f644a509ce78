//go:build amd64

package vmwatch

import (
	"math/bits"
	"slices"

	"go.uber.org/atomic"

	"pinwheel/mem"
)

// uffdRange is one armed range. Several may overlap or be equal.
type uffdRange struct {
	r mem.Range
	n *uffdNotifier
	// lost is set when part of r was found to be mapped anew and is about to
	// be armed again for another range: from then on the kernel's answer for r
	// would be about the wrong mapping.
	lost atomic.Bool
	// faults is pageFaults before the last pinning; negative while not registered.
	faults atomic.Int64
	// trusted says that r is pinned, and that events and the generation tell of all that may happen to it.
	trusted atomic.Bool
}

// uffdRanges finds ranges by address. A range of class k is at most 2^k bytes long and listed for the one or two
// blocks of 2^k bytes that it touches, so a look-up depends on what overlaps, not on how many there are.
type uffdRanges struct {
	in      map[block][]*uffdRange
	classes [64]int // how many ranges there are of each
}

type block struct {
	class  int
	number mem.Addr
}

func classOf(r mem.Range) int { return bits.Len64(r.Len() - 1) }

func (s *uffdRanges) add(u *uffdRange) {
	if s.in == nil {
		s.in = map[block][]*uffdRange{}
	}
	k := classOf(u.r)
	s.classes[k]++
	for at := u.r.Start >> k; at <= (u.r.End-1)>>k; at++ {
		s.in[block{k, at}] = append(s.in[block{k, at}], u)
	}
}

func (s *uffdRanges) remove(u *uffdRange) {
	k := classOf(u.r)
	s.classes[k]--
	for at := u.r.Start >> k; at <= (u.r.End-1)>>k; at++ {
		left := slices.DeleteFunc(s.in[block{k, at}], func(o *uffdRange) bool { return o == u })
		if s.in[block{k, at}] = left; len(left) == 0 {
			delete(s.in, block{k, at})
		}
	}
}

// overlapping calls do for those that share a page with r, some of them twice.
func (s *uffdRanges) overlapping(r mem.Range, do func(*uffdRange)) {
	some := func(list []*uffdRange) {
		for _, u := range list {
			if u.r.Overlaps(r) {
				do(u)
			}
		}
	}
	for k, n := range s.classes {
		switch first, last := r.Start>>k, (r.End-1)>>k; {
		case n == 0:
		case last-first > mem.Addr(len(s.in)): // more blocks than lists
			for b, list := range s.in {
				if b.class == k {
					some(list)
				}
			}
		default:
			for at := first; at <= last; at++ {
				some(s.in[block{k, at}])
			}
		}
	}
}
