package regcache

// lru is a binary heap of registered regions by the epoch of their last use, with the least
// recent one first and the older region first among equals. Hits don't touch it: it knows a
// lower bound of each region's last use, which Cache.victim corrects when the region comes first.
type lru []lruItem

type lruItem struct {
	used   uint64 // epoch of last use, as far as the heap knows
	region *region
}

func (a lruItem) before(b lruItem) bool {
	return a.used < b.used || a.used == b.used && a.region.id < b.region.id
}

func (h *lru) add(g *region, used uint64) {
	*h = append(roomForOne(*h), lruItem{used, g})
	h.up(len(*h) - 1)
}

func (h *lru) remove(g *region) {
	i, last := int(g.heapIndex), len(*h)-1
	moved := (*h)[last]
	(*h)[last] = lruItem{}
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		h.fix(i)
	}
	g.heapIndex = -1
}

// touch moves a region to where its last use puts it.
func (h lru) touch(g *region, used uint64) {
	h[g.heapIndex].used = used
	h.fix(int(g.heapIndex))
}

// fix moves item i to where it belongs.
func (h lru) fix(i int) {
	h.down(i)
	h.up(i) // does nothing if the item has moved
}

func (h lru) up(i int) {
	item := h[i]
	for i > 0 && item.before(h[(i-1)/2]) {
		h.put(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	h.put(i, item)
}

func (h lru) down(i int) {
	item := h[i]
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if child >= len(h) || !h[child].before(item) {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, item)
}

func (h lru) put(i int, item lruItem) {
	h[i] = item
	item.region.heapIndex = int32(i)
}

// regions returns those of the heap.
func (h lru) regions() []*region {
	all := make([]*region, len(h))
	for i, item := range h {
		all[i] = item.region
	}
	return all
}
