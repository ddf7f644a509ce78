package vmmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"pinwheel/comm/vmmc/broker"
)

// registered is a name that this node has at the broker. It is a net.Listener.
type registered struct {
	node   *Node
	at     endpoint
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu   sync.Mutex
	here *broker.Registration // nil: the broker is gone
}

// register registers the name of an address.
func (n *Node) register(e endpoint) (net.Listener, error) {
	if e.target.Host != "" || e.target.UID != uint32(os.Geteuid()) {
		return nil, fmt.Errorf("%w: a process can have a name of its own user and node only", ErrAddress)
	}
	l := &registered{node: n, at: e}
	l.ctx, l.cancel = context.WithCancel(n.ctx)
	if err := l.again(); err != nil {
		l.cancel()
		return nil, err
	}
	return l, nil
}

func (l *registered) again() error {
	r, err := broker.Register(l.ctx, l.at.broker, broker.Exporter{
		Name: l.at.target.Name, Users: l.node.opt.Users, Nodes: l.node.opt.Nodes, Stats: l.node.Stats,
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return errors.Join(net.ErrClosed, r.Close())
	}
	l.here = r
	return nil
}

// Accept returns the next connection of an importer. It fails with broker.ErrLost if there is none to be had from
// the broker. Any other error says once that the broker is gone. The next call waits until it is back: connections
// that it has made go on meanwhile.
func (l *registered) Accept() (net.Conn, error) {
	l.mu.Lock()
	r := l.here
	l.mu.Unlock()
	for pause := 10 * time.Millisecond; r == nil; pause = min(2*pause, time.Second) {
		select {
		case <-l.ctx.Done():
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
		if l.again() == nil {
			l.mu.Lock()
			r = l.here
			l.mu.Unlock()
		}
	}
	c, err := r.Accept()
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, broker.ErrLost):
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.here = nil
	_ = r.Close() // it is of no use any more
	if l.ctx.Err() != nil {
		return nil, net.ErrClosed
	}
	return nil, fmt.Errorf("%w any more at %s: nobody new finds this node until it is back (%w)",
		broker.ErrNone, l.at.broker, err)
}

// Close gives the name back.
func (l *registered) Close() error {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here == nil {
		return nil
	}
	return l.here.Close()
}

// Addr is the address by which this user's processes import.
func (l *registered) Addr() net.Addr { return name(l.at.target.Name) }

// name is the net.Addr of a name at the broker.
type name string

func (name) Network() string  { return "node" }
func (n name) String() string { return string(n) }
