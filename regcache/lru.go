package regcache

// lru is a binary heap of registered regions by the epoch of their last use.
// Hits don't touch it: what it knows is a lower bound, corrected when a
// region comes to the top (Cache.victim). Ties go to the older region.
type lru []*region

func (h lru) less(i, j int) bool {
	a, b := h[i], h[j]
	return a.used < b.used || a.used == b.used && a.id < b.id
}

func (h lru) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h lru) up(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h lru) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

func (h *lru) push(g *region) {
	g.heapIndex = len(*h)
	*h = append(*h, g)
	h.up(g.heapIndex)
}

func (h *lru) remove(g *region) {
	i, last := g.heapIndex, len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	g.heapIndex = -1
}

// touch moves a region to where its last use puts it.
func (h lru) touch(g *region, epoch uint64) {
	g.used = epoch
	h.down(g.heapIndex)
}
