package vmmc

import (
	"errors"
	"net"
	"time"
)

// accept serves those who connect until the listener is closed.
func (n *Node) accept(l net.Listener, e endpoint) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			n.warnOfPeer("%v: %v", l.Addr(), err)
			select {
			case <-n.ctx.Done():
			case <-time.After(100 * time.Millisecond): // most likely no descriptor is left
			}
			continue
		}
		if n.begin(c, e) != nil {
			c.Close()
		}
	}
}

// maxHandshakes is how many of those who connect may be busy proving who they are. With one more, one of them
// has to go.
const maxHandshakes = 64

// handshakeTimeout bounds how long that may take.
const handshakeTimeout = 3 * time.Second

// begin serves a connection in a goroutine of its own.
func (n *Node) begin(c net.Conn, e endpoint) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.spawn(func() { n.serve(c, e) }); err != nil {
		return err
	}
	n.handshakes.Enter(c, maxHandshakes)
	return nil
}

// proved tells whether there is room for a connection after its handshake, which has failed or not.
func (n *Node) proved(c net.Conn, failed bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handshakes.Leave(c)
	if failed || n.accepted >= n.opt.MaxConnections {
		return false
	}
	n.accepted++
	return true
}
