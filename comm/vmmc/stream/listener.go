package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/internal/limit"
)

// Listener accepts connections for a service: a net.Listener. All methods are safe for concurrent use.
type Listener struct {
	node    *vmmc.Node
	addr    Addr
	opt     Options
	memory  []byte
	door    *vmmc.Export
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	waiting chan made
	forgets func() // the node does not close this listener any more

	warnings limit.Warnings

	// mu protects what follows, and keeps the memory. Close holds it while it calls the node.
	mu    sync.Mutex
	known map[caller]bool // those who have a connection, or are to get one
	begun int             // connections that wait, to be made or for Accept
	of    map[string]int  // of these, those of each peer
	tasks sync.WaitGroup  // make connections; none begins after Close
}

// made is a connection that waits for Accept.
type made struct {
	conn *Conn
	peer string
}

// caller is an inbox of a peer.
type caller struct {
	peer, address string
	inbox         uint32
}

// Listen makes a node accept connections for a service, a number below 1<<31 that no export of it has.
func Listen(n *vmmc.Node, service uint32, o Options) (*Listener, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	addresses := n.Addresses()
	if service >= firstInbox || len(addresses) == 0 {
		return nil, fmt.Errorf("stream: service %d at %q", service, addresses)
	}
	memory, err := n.Alloc(slots * slotBytes)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		node: n, addr: Addr{addresses[0], service}, opt: o, memory: memory,
		waiting: make(chan made, o.Backlog), known: map[caller]bool{}, of: map[string]int{},
	}
	l.ctx, l.close = context.WithCancel(context.Background())
	if l.door, err = n.Export(service, memory, o.Peers, vmmc.ExportOptions{}); err != nil {
		return nil, errors.Join(err, n.Free(memory))
	}
	if l.forgets, err = n.OnClose(func() { _ = l.shut() }); err != nil { // it fails if it was closed before
		return nil, err // the node has closed, and frees the rest
	}
	l.door.Handle(l.asked)
	return l, nil
}

// asked takes a request. Those that are malformed, known, or too many are asked again, or not meant.
func (l *Listener) asked(n vmmc.Notification) {
	if n.Offset%slotBytes != 0 || n.Bytes > slotBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // the memory may be gone
		return
	}
	r, err := decodeRequest(bytes.Clone(l.memory[n.Offset:][:n.Bytes]))
	who := caller{n.Peer, r.address, r.inbox}
	full := l.begun >= l.opt.Backlog || l.of[n.Peer] >= (l.opt.Backlog+1)/2
	if err != nil || l.known[who] || full {
		return
	}
	l.known[who] = true
	l.begun++
	l.of[n.Peer]++
	l.tasks.Go(func() {
		c, err := l.connect(who)
		if err == nil {
			l.waiting <- made{c, who.peer} // there is room for all that are begun
			return
		}
		closed := l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) || errors.Is(err, vmmc.ErrClosed)
		if l.opt.Warn != nil && !closed {
			l.warnings.Say(l.opt.Warn, fmt.Sprintf("stream: no connection for %q at %s: %v", who.peer, who.address, err))
		}
		l.waitsNoMore(who.peer)
		l.forget(who)
	})
}

// waitsNoMore makes room for another connection.
func (l *Listener) waitsNoMore(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun--
	if l.of[peer]--; l.of[peer] == 0 {
		delete(l.of, peer)
	}
}

// connect makes the connection that somebody asked for. It fails for those who have gone.
func (l *Listener) connect(who caller) (*Conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, l.opt.Timeout)
	defer cancel()
	c, err := newConn(l.node, &l.opt, vmmc.Permissions{Peers: []string{who.peer}})
	if err != nil {
		return nil, err
	}
	to, err := l.node.Import(ctx, who.inbox, who.address)
	if err == nil {
		err = c.connected(to, l.addr, Addr{Node: who.address})
	}
	if err == nil {
		_, err = c.say(ctx, answerAt, 1<<32|uint64(c.id))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.freed { // the node has closed
		return nil, net.ErrClosed
	}
	c.accepted, c.peer = true, who.peer
	c.released = func() { l.forget(who) }
	return c, nil
}

func (l *Listener) forget(who caller) {
	l.mu.Lock()
	delete(l.known, who)
	l.mu.Unlock()
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	if l.ctx.Err() == nil {
		select {
		case m := <-l.waiting:
			l.waitsNoMore(m.peer)
			return m.conn, nil
		case <-l.ctx.Done():
		}
	}
	return nil, &net.OpError{Op: "accept", Net: "vmmc", Addr: l.addr, Err: net.ErrClosed}
}

// Close ends the listener, and the connections that nobody has accepted. Others stay.
func (l *Listener) Close() error {
	l.forgets()
	return l.shut()
}

func (l *Listener) shut() error {
	l.mu.Lock()
	closed := l.ctx.Err() != nil
	l.close()
	l.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "vmmc", Addr: l.addr, Err: net.ErrClosed}
	}
	l.tasks.Wait()
	for {
		select {
		case m := <-l.waiting:
			m.conn.Close()
			continue
		default:
		}
		break
	}
	err := l.door.Unexport(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil { // else the node was closed, and has freed it
		err = l.node.Free(l.memory)
	}
	if errors.Is(err, vmmc.ErrNotExported) {
		return nil
	}
	return err
}

// Addr returns the address of the node and the service.
func (l *Listener) Addr() net.Addr { return l.addr }
