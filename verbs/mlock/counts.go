package mlock

import (
	"slices"

	"pinwheel/mem"
)

// counts are the reference counts of pages, kept as runs of equal counts:
// sorted, disjoint, never zero, and different from a neighbour that they touch.
// There are at most two runs a registration, so a search is short and an
// insertion moves few bytes, compared with the system call that goes with it.
type counts struct {
	runs  []run
	bytes uint64 // covered by runs
}

type run struct {
	mem.Range
	refs int
}

// add counts one more reference to every page of r.
func (c *counts) add(r mem.Range) {
	first, last := c.cut(r)
	var mine []run
	at := r.Start
	for _, old := range c.runs[first:last] {
		if at < old.Start {
			mine = append(mine, run{mem.Range{Start: at, End: old.Start}, 1})
		}
		old.refs++
		mine = append(mine, old)
		at = old.End
	}
	if at < r.End {
		mine = append(mine, run{mem.Range{Start: at, End: r.End}, 1})
	}
	c.replace(first, last, mine)
}

// remove counts one reference less to every page of r, all of which were
// added, and returns the ranges that have none left.
func (c *counts) remove(r mem.Range) (unused []mem.Range) {
	first, last := c.cut(r)
	var mine []run
	for _, old := range c.runs[first:last] {
		if old.refs--; old.refs > 0 {
			mine = append(mine, old)
		} else {
			unused = append(unused, old.Range)
		}
	}
	c.replace(first, last, mine)
	return unused
}

// cut splits the runs that cross an end of r and returns the indices of those
// inside.
func (c *counts) cut(r mem.Range) (first, last int) {
	return c.split(r.Start), c.split(r.End)
}

// split makes a a boundary of runs and returns the index of the first run
// that does not lie before it.
func (c *counts) split(a mem.Addr) int {
	i, _ := slices.BinarySearchFunc(c.runs, a, func(x run, a mem.Addr) int {
		if x.End <= a {
			return -1
		}
		return 1
	})
	if i < len(c.runs) && c.runs[i].Start < a {
		left, right := c.runs[i], c.runs[i]
		left.End, right.Start = a, a
		c.runs = slices.Replace(c.runs, i, i+1, left, right)
		i++
	}
	return i
}

// replace puts mine in the place of the runs first to last and joins what has
// become equal to its neighbour.
func (c *counts) replace(first, last int, mine []run) {
	for _, x := range c.runs[first:last] {
		c.bytes -= x.Len()
	}
	for _, x := range mine {
		c.bytes += x.Len()
	}
	from, to := max(first-1, 0), min(last+1, len(c.runs))
	var joined []run
	for _, part := range [][]run{c.runs[from:first], mine, c.runs[last:to]} {
		for _, x := range part {
			if n := len(joined); n > 0 && joined[n-1].End == x.Start && joined[n-1].refs == x.refs {
				joined[n-1].End = x.End
			} else {
				joined = append(joined, x)
			}
		}
	}
	c.runs = slices.Replace(c.runs, from, to, joined...)
}
