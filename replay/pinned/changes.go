package pinned

// changes is a binary heap of values by time. Values of equal time leave in
// the order in which they came, so that a simulation is deterministic.
type changes[T any] struct {
	heap []change[T]
	seq  uint64
}

type change[T any] struct {
	at    int64
	seq   uint64
	value T
}

func (c *change[T]) before(o *change[T]) bool { return c.at < o.at || c.at == o.at && c.seq < o.seq }

// next is the time of the first event; Never if there is none.
func (h *changes[T]) next() int64 {
	if len(h.heap) == 0 {
		return Never
	}
	return h.heap[0].at
}

func (h *changes[T]) push(at int64, v T) {
	h.seq++
	h.heap = append(h.heap, change[T]{at, h.seq, v})
	for i := len(h.heap) - 1; i > 0; {
		p := (i - 1) / 2
		if !h.heap[i].before(&h.heap[p]) {
			return
		}
		h.heap[i], h.heap[p] = h.heap[p], h.heap[i]
		i = p
	}
}

// pop removes the first event; there must be one.
func (h *changes[T]) pop() T {
	v := h.heap[0].value
	n := len(h.heap) - 1
	h.heap[0] = h.heap[n]
	h.heap[n] = change[T]{}
	h.heap = h.heap[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return v
		}
		if c+1 < n && h.heap[c+1].before(&h.heap[c]) {
			c++
		}
		if !h.heap[c].before(&h.heap[i]) {
			return v
		}
		h.heap[i], h.heap[c] = h.heap[c], h.heap[i]
		i = c
	}
}
