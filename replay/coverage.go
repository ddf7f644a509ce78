package replay

import (
	"slices"

	"pinwheel/mem"
)

// coverage is a set of addresses: disjoint ranges, ascending, none adjacent.
type coverage struct{ ranges []mem.Range }

// after returns the index of the first range that ends at a or later.
func (c *coverage) after(a mem.Addr) int {
	i, _ := slices.BinarySearchFunc(c.ranges, a, func(r mem.Range, a mem.Addr) int {
		if r.End < a {
			return -1
		}
		return 1
	})
	return i
}

func (c *coverage) covers(r mem.Range) bool {
	i := c.after(r.End)
	return i < len(c.ranges) && c.ranges[i].Contains(r)
}

func (c *coverage) add(r mem.Range) {
	i := c.after(r.Start)
	j := i
	for j < len(c.ranges) && c.ranges[j].Start <= r.End {
		r = r.Union(c.ranges[j])
		j++
	}
	if j == i+1 && c.ranges[i] == r {
		return
	}
	c.ranges = slices.Replace(c.ranges, i, j, r)
}
