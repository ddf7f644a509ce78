package regcache

import "container/heap"

// lru is a heap of registered regions by the epoch of their last use, with the least recent one
// first and the older region first among equals. Hits don't touch it: it knows a lower bound
// of each region's last use, which Cache.victim corrects when the region comes first.
type lru []*region

// Len is for container/heap, as are Less, Swap, Push and Pop.
func (h lru) Len() int { return len(h) }

func (h lru) Less(i, j int) bool {
	a, b := h[i], h[j]
	return a.used < b.used || a.used == b.used && a.id < b.id
}

func (h lru) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *lru) Push(g any) {
	g.(*region).heapIndex = len(*h)
	*h = append(*h, g.(*region))
}

func (h *lru) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	g.heapIndex = -1
	return g
}

func (h *lru) add(g *region) { heap.Push(h, g) }

func (h *lru) remove(g *region) { heap.Remove(h, g.heapIndex) }

// touch moves a region to where its last use puts it.
func (h *lru) touch(g *region, epoch uint64) {
	g.used = epoch
	heap.Fix(h, g.heapIndex)
}
