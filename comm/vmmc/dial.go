package vmmc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"pinwheel/comm/vmmc/broker"
)

// dialing is a connection to an exporter, or somebody's attempt to make one.
type dialing struct {
	done chan struct{} // closed when the attempt is over
	out  *outbound     // nil if it failed
	err  error
}

// connect returns the connection to an exporter, and makes it if there is none. Until the exporter is there,
// it tries again and again. Only one caller tries at a time.
func (n *Node) connect(ctx context.Context, address string) (*outbound, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		out, err := n.connectOnce(ctx, address)
		if err == nil || permanent(err) {
			return out, err
		}
		select {
		case <-n.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("vmmc: %s: %w (%w)", address, ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// Reach connects to the node at an address, as Import does, and waits for nobody: it fails with ECONNREFUSED or ENOENT
// where nothing listens. Only a name at the broker is waited for, until ctx ends. The connection is there for an Import
// that follows.
func (n *Node) Reach(ctx context.Context, address string) error {
	o, err := n.connectOnce(ctx, address)
	if err != nil {
		return fmt.Errorf("vmmc: %s: %w", address, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spareSoon()
	return nil
}

// permanent tells whether another attempt would give the same error.
func permanent(err error) bool {
	var remote *net.OpError // of crypto/tls: an alert
	return errors.Is(err, ErrAddress) || errors.Is(err, ErrIdentity) || errors.Is(err, ErrClosed) ||
		errors.Is(err, syscall.EACCES) || errors.Is(err, broker.ErrNone) || errors.Is(err, broker.ErrRefused) ||
		errors.As(err, &remote) && remote.Op == "remote error" || errors.As(err, new(*tls.CertificateVerificationError))
}

func (n *Node) connectOnce(ctx context.Context, address string) (*outbound, error) {
	n.mu.Lock()
	d, others := n.outbound[address], true
	if d == nil {
		if n.closed {
			n.mu.Unlock()
			return nil, ErrClosed
		}
		d, others = &dialing{done: make(chan struct{})}, false
		n.outbound[address] = d
	}
	n.mu.Unlock()
	if others {
		select {
		case <-d.done:
			return d.out, d.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.ctx.Done():
			return nil, ErrClosed
		}
	}
	out, err := n.dial(ctx, address)
	return n.dialled(address, d, out, err)
}

// dialled ends an attempt. It takes no connection that is over already: outbound.end, which takes n.mu after
// that, would not find it, and nobody would remove it.
func (n *Node) dialled(address string, d *dialing, out *outbound, err error) (*outbound, error) {
	n.mu.Lock()
	if err == nil {
		err = out.reason()
	}
	if err == nil && n.closed {
		err = ErrClosed
	}
	if d.out, d.err = out, err; err != nil {
		d.out = nil
		delete(n.outbound, address)
	}
	close(d.done)
	n.mu.Unlock()
	if err != nil && out != nil {
		out.fail(err)
	}
	return d.out, d.err
}

// dial makes a connection. The broker waits for the exporter that it connects to.
func (e *endpoint) dial(ctx context.Context) (net.Conn, error) {
	if e.network == "node" {
		c, err := broker.Dial(ctx, e.broker, e.target)
		if err != nil {
			return nil, err // no *broker.Conn
		}
		return c, nil
	}
	var d net.Dialer
	return d.DialContext(ctx, e.network, e.address)
}

// dial connects, and returns when the exporter said hello.
func (n *Node) dial(ctx context.Context, address string) (*outbound, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	e, err := n.endpoint(address)
	if err != nil {
		return nil, err
	}
	c, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	c, who, err := n.authenticate(ctx, c, e, tls.Client)
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UnixConn); ok {
		c = &unixConn{UnixConn: u}
	}
	o := newOutbound(n, address, newStream(c, &n.opt))
	o.ours = who.UID == int64(os.Geteuid())
	greeted := make(chan struct{})
	n.mu.Lock()
	err = n.spawn(func() { o.serve(greeted) })
	n.mu.Unlock()
	if err != nil {
		c.Close()
		return nil, err
	}
	select {
	case <-greeted:
		return o, nil
	case <-o.ended:
		err = o.reason()
	case <-ctx.Done():
		err = ctx.Err()
	case <-n.ctx.Done():
		err = ErrClosed
	}
	o.fail(err)
	return nil, fmt.Errorf("vmmc: %s: %w", address, err)
}
