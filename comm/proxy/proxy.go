// Package proxy carries the connections of programs that know only sockets over virtual memory-mapped
// communication, and from there to such programs.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/peer"
	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
	"pinwheel/internal/unixsocket"
)

// Options configure a Proxy.
type Options struct {
	// Listen and Target are addresses: tcp:HOST:PORT and unix:PATH of sockets, and vmmc:tcp:HOST:PORT and
	// vmmc:unix:PATH of another proxy. One of them is of vmmc, the other is not.
	Listen, Target string
	Service        uint32 // number that two proxies agree on
	// End says who this proxy is, which proxies it talks to, and where one at a Target of vmmc reaches it.
	peer.End

	// Warn gets a line for what fails.
	Warn func(string)
}

// dialTimeout bounds how long a client waits for its target.
const dialTimeout = 10 * time.Second

// Proxy accepts connections and carries each to its target.
type Proxy struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	node     *vmmc.Node
	callback *peer.Callback // nil: this proxy does not connect to another one
	warn     func(string)
}

// Check finds options that contradict each other.
func (o *Options) Check() error {
	_, here := strings.CutPrefix(o.Listen, "vmmc:")
	target, there := strings.CutPrefix(o.Target, "vmmc:")
	if here == there {
		return fmt.Errorf("one address of %s and %s must begin with vmmc: and not the other", o.Listen, o.Target)
	}
	if !there {
		target = ""
	}
	for _, a := range []string{o.Listen, o.Target} {
		if _, _, err := socketAddress(strings.TrimPrefix(a, "vmmc:")); err != nil {
			return err
		}
	}
	return o.End.Check(target)
}

// Open listens.
func Open(o Options) (*Proxy, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Proxy{warn: o.Warn}
	if err := p.open(&o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Proxy) open(o *Options) error {
	own := strings.TrimPrefix(o.Listen, "vmmc:")
	target, there := strings.CutPrefix(o.Target, "vmmc:")
	n, peers, err := o.Identity("proxy")
	if err == nil && there {
		if p.callback, err = o.Callback(target, "proxy"); err == nil {
			own = p.callback.Listen
		}
	}
	if err != nil {
		return err
	}
	n.Listen, n.Warn = []string{own}, o.Warn
	if p.node, err = vmmc.Open(n); err != nil {
		return err
	}
	s := stream.Options{Peers: peers, Warn: o.Warn}
	if there {
		s.Address = p.callback.Address(p.node)
		reach := func(ctx context.Context) error {
			err := p.node.Reach(ctx, target)
			if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
				err = fmt.Errorf("%s: no proxy listens there: start that one first", o.Target)
			}
			return err
		}
		within, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		if err := reach(within); err != nil { // else programs would be let in, and then cut off
			return err
		}
		p.dial = func(ctx context.Context) (net.Conn, error) {
			if err := reach(ctx); err != nil {
				return nil, err
			}
			return stream.Dial(ctx, p.node, target, o.Service, s)
		}
		network, address, _ := socketAddress(o.Listen)
		var l net.Listener
		if network == "unix" {
			l, err = unixsocket.Listen(network, address)
		} else {
			l, err = net.Listen(network, address)
		}
		if err == nil {
			p.listener = l
		}
		return err
	}
	network, address, _ := socketAddress(target)
	p.dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
	l, err := stream.Listen(p.node, o.Service, s)
	if err == nil {
		p.listener = l
	}
	return err
}

func socketAddress(a string) (network, address string, err error) {
	network, address, _ = strings.Cut(a, ":")
	if network != "tcp" && network != "unix" || address == "" {
		return "", "", fmt.Errorf("%q: write tcp:HOST:PORT or unix:PATH, and vmmc: before one of the two addresses", a)
	}
	return network, address, nil
}

// Addr is where the proxy listens for its clients.
func (p *Proxy) Addr() net.Addr { return p.listener.Addr() }

// Close ends the listener and all connections over vmmc. Serve does it as well.
func (p *Proxy) Close() error {
	var errs []error
	if p.listener != nil {
		errs = append(errs, p.listener.Close())
	}
	if p.node != nil {
		errs = append(errs, p.node.Close())
	}
	if p.callback != nil {
		errs = append(errs, p.callback.Close())
	}
	return errors.Join(errs...)
}

// Serve carries connections until ctx ends, which is no error. Connections end with it.
func (p *Proxy) Serve(ctx context.Context) (err error) {
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		<-ctx.Done()
		ended <- p.Close()
	}()
	for {
		var c net.Conn
		if c, err = p.listener.Accept(); err == nil {
			all.Go(func() { p.carry(ctx, c) })
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			break
		}
		p.warn(err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond): // most likely no descriptor is left
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	err = errors.Join(err, <-ended)
	all.Wait()
	return err
}

// carry connects a client to the target.
func (p *Proxy) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	within, cancel := context.WithTimeout(ctx, dialTimeout)
	target, err := p.dial(within)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			p.warn(err.Error())
		}
		abort(client)
		return
	}
	defer target.Close()
	stop := context.AfterFunc(ctx, func() { abort(client); abort(target) })
	defer stop()
	relay(client, target)
}
