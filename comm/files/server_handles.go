package files

import (
	"fmt"
	"sync"
	"syscall"
)

// opened is something that a client has open at the server. Requests may use it while it is closed: they fail.
type opened interface{ close() }

// handles are what a client has open.
type handles struct {
	most int

	// mu protects what follows. It is a leaf.
	mu     sync.Mutex
	of     map[uint64]opened
	last   uint64
	closed bool
}

// add gives something its number, or closes it and fails with EMFILE.
func (h *handles) add(o opened) (uint64, error) {
	h.mu.Lock()
	full := h.closed || len(h.of) >= h.most
	if full {
		h.mu.Unlock()
		o.close()
		return 0, fmt.Errorf("%w: %d are open", syscall.EMFILE, h.most)
	}
	defer h.mu.Unlock()
	h.last++
	h.of[h.last] = o
	return h.last, nil
}

// find returns what a number stands for, if it is of the kind that the request needs.
func find[T opened](h *handles, number uint64) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.of[number].(T)
	if !ok {
		return o, fmt.Errorf("%d: %w", number, errHandle)
	}
	return o, nil
}

// take takes something out, for whoever closes it.
func (h *handles) take(number uint64) (opened, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.of[number]
	if !ok {
		return nil, fmt.Errorf("%d: %w", number, errHandle)
	}
	delete(h.of, number)
	return o, nil
}

func (h *handles) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.of)
}

// close closes all. What is added later is closed at once.
func (h *handles) close() {
	h.mu.Lock()
	all := h.of
	h.of, h.closed = map[uint64]opened{}, true
	h.mu.Unlock()
	for _, o := range all {
		o.close()
	}
}
