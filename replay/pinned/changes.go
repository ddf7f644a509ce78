package pinned

import "container/heap"

// changes are values by time. Values of equal time leave in the order in which
// they came, so that a simulation is deterministic.
type changes[T any] struct {
	heap changeHeap[T]
	seq  uint64
}

type change[T any] struct {
	at    int64
	seq   uint64
	value T
}

// next is the time of the first value; Never if there is none.
func (c *changes[T]) next() int64 {
	if len(c.heap) == 0 {
		return Never
	}
	return c.heap[0].at
}

func (c *changes[T]) push(at int64, v T) {
	c.seq++
	heap.Push(&c.heap, &change[T]{at, c.seq, v})
}

// pop removes the first value; there must be one.
func (c *changes[T]) pop() T { return heap.Pop(&c.heap).(*change[T]).value }

// changeHeap is a heap.Interface.
type changeHeap[T any] []*change[T]

func (h changeHeap[T]) Len() int      { return len(h) }
func (h changeHeap[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h changeHeap[T]) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h *changeHeap[T]) Push(x any) { *h = append(*h, x.(*change[T])) }

func (h *changeHeap[T]) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
