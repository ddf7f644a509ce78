package files

import (
	"sync"

	"pinwheel/comm/vmmc"
)

// nodeHook has a node close something before it ends. Whatever the close looks at is set before the hook.
type nodeHook struct {
	mu   sync.Mutex
	stop func() // nil: there is none
}

// set fails with vmmc.ErrClosed for a node that was closed.
func (h *nodeHook) set(n *vmmc.Node, end func()) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop, err = n.OnClose(end)
	return err
}

// forget has the node close it no more. A node that is being closed may call end before set has returned.
func (h *nodeHook) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
}
