package replay

// eventHeap holds values until their time, those of equal time in the order
// in which they came.
type eventHeap[T any] struct {
	events []event[T]
	seq    uint64
}

type event[T any] struct {
	at    int64
	seq   uint64
	value T
}

func (e *event[T]) before(o *event[T]) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// next is the time of the first event; never if there is none.
func (h *eventHeap[T]) next() int64 {
	if len(h.events) == 0 {
		return never
	}
	return h.events[0].at
}

func (h *eventHeap[T]) push(at int64, v T) {
	h.seq++
	h.events = append(h.events, event[T]{at, h.seq, v})
	for i := len(h.events) - 1; i > 0; {
		p := (i - 1) / 2
		if !h.events[i].before(&h.events[p]) {
			return
		}
		h.events[i], h.events[p] = h.events[p], h.events[i]
		i = p
	}
}

// pop removes the first event; there must be one.
func (h *eventHeap[T]) pop() T {
	v := h.events[0].value
	n := len(h.events) - 1
	h.events[0] = h.events[n]
	h.events[n] = event[T]{}
	h.events = h.events[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return v
		}
		if c+1 < n && h.events[c+1].before(&h.events[c]) {
			c++
		}
		if !h.events[c].before(&h.events[i]) {
			return v
		}
		h.events[i], h.events[c] = h.events[c], h.events[i]
		i = c
	}
}
