package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"pinwheel/comm/vmmc"
)

// wakes is how many notifications the peer may have outstanding. Their ring fits into a page, and the node gives
// many of them back at a time: each time costs both ends as much as a wake-up.
const wakes = 120

// newConn exports an inbox for the permitted peers.
func newConn(n *vmmc.Node, o *Options, p vmmc.Permissions) (*Conn, error) {
	memory, err := n.Alloc(uint64(ringAt + o.Ring))
	if err != nil {
		return nil, err
	}
	c := &Conn{
		node: n, in: inboxIn(memory), linger: o.Timeout, closed: make(chan struct{}), told: make(chan struct{}),
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1), answered: make(chan struct{}),
	}
	p.MaxImporters = 1
	for {
		c.id = rand.Uint32() | firstInbox
		c.export, err = n.Export(c.id, memory, p, vmmc.ExportOptions{Queue: wakes, Coalesce: true})
		if !errors.Is(err, vmmc.ErrExported) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.Free(memory))
	}
	c.export.Handle(c.notified)
	forget, err := n.OnClose(c.abandon)
	if err != nil {
		return nil, err // the node has closed, and frees the rest
	}
	c.mu.Lock()
	c.forget = forget
	c.mu.Unlock()
	return c, nil
}

// connected gives the connection the inbox of its peer. It fails if that has no room for a ring.
func (c *Conn) connected(to *vmmc.Import, local, remote Addr) error {
	if to.Bytes() < ringAt+minRing || to.Bytes() > ringAt+maxRing {
		to.Unimport()
		return fmt.Errorf("stream: %v has an inbox of %d bytes", remote, to.Bytes())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local, c.remote = local, remote
	select {
	case <-c.closed: // with the node
		to.Unimport()
		return net.ErrClosed
	default:
	}
	c.to = to
	return c.look()
}
