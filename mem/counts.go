package mem

import (
	"iter"
	"slices"
)

// Counts are reference counts of addresses. They cut the address space where the count
// changes, so their memory is bounded by the ranges that are held at one time. The zero
// value holds nothing. Counts are not safe for concurrent use.
//
// A look-up is a binary search; Add and Remove also move the cuts that follow.
type Counts struct {
	cuts    []Addr  // ascending; segment i is [cuts[i], cuts[i+1])
	count   []int32 // per segment, never that of the one before; the last is open and 0
	bytes   uint64
	runs    int
	crossed []Range // scratch of change
}

// Add counts one more reference to every address of r. It returns the parts of r that had
// none, valid until the next call.
func (c *Counts) Add(r Range) (added []Range) { return c.change(r, 1) }

// Remove counts one reference less to every address of r, all of which must have been
// added. It returns the parts of r that have none left, valid until the next call.
func (c *Counts) Remove(r Range) (removed []Range) { return c.change(r, -1) }

// Bytes returns the number of addresses that have a reference.
func (c *Counts) Bytes() uint64 { return c.bytes }

// Runs returns how many parts without a gap the addresses that have a reference form.
func (c *Counts) Runs() int { return c.runs }

// All yields the addresses that have a reference, in ascending order, in runs of equal counts.
// The counts must not change meanwhile.
func (c *Counts) All() iter.Seq2[Range, int] {
	return func(yield func(Range, int) bool) {
		for i, n := range c.count {
			if n > 0 && !yield(Range{c.cuts[i], c.cuts[i+1]}, int(n)) {
				return
			}
		}
	}
}

func (c *Counts) change(r Range, delta int32) []Range {
	c.crossed = c.crossed[:0]
	if r.Empty() {
		return nil
	}
	first := c.cut(r.Start)
	end := c.cut(r.End)
	for i := first; i < end; i++ {
		segment := Range{c.cuts[i], c.cuts[i+1]}
		was := c.count[i]
		c.count[i] += delta
		switch {
		case was == 0:
			c.bytes += segment.Len()
			c.runs += 1 - c.neighbours(i)
		case c.count[i] == 0:
			c.bytes -= segment.Len()
			c.runs -= 1 - c.neighbours(i)
		default:
			continue
		}
		c.crossed = append(c.crossed, segment)
	}
	// Within r all counts have changed alike, so that only its ends may have become no cut.
	c.join(end)
	c.join(first)
	return c.crossed
}

// neighbours returns how many of the segments next to segment i have a reference; the open one has none.
func (c *Counts) neighbours(i int) int { return min(int(c.before(i)), 1) + min(int(c.count[i+1]), 1) }

// cut makes an address a boundary and returns the segment that begins there.
func (c *Counts) cut(a Addr) int {
	i, found := slices.BinarySearch(c.cuts, a)
	if !found {
		c.cuts = slices.Insert(c.cuts, i, a)
		c.count = slices.Insert(c.count, i, c.before(i))
	}
	return i
}

// join removes the boundary at which segment i begins if the count does not change there.
func (c *Counts) join(i int) {
	if c.count[i] == c.before(i) {
		c.cuts = slices.Delete(c.cuts, i, i+1)
		c.count = slices.Delete(c.count, i, i+1)
	}
}

// before returns the count of the segment before segment i.
func (c *Counts) before(i int) int32 {
	if i == 0 {
		return 0
	}
	return c.count[i-1]
}
