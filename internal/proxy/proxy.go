// Package proxy carries the connections of programs that know only sockets over virtual memory-mapped
// communication, and from there to such programs.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pinwheel/internal/unixsocket"
	"pinwheel/vmmc"
	"pinwheel/vmmc/stream"
)

// Options configure a Proxy.
type Options struct {
	// Listen and Target are addresses: tcp:HOST:PORT and unix:PATH of sockets, and vmmc:tcp:HOST:PORT and
	// vmmc:unix:PATH of another proxy. One of them is of vmmc, the other is not.
	Listen, Target string
	Service        uint32 // number that two proxies agree on
	// From is where the proxy at a Target of vmmc reaches this one: with certificates, by a name in that of this
	// proxy. Port 0 stands for the one that the kernel chooses. Empty, on this machine: this proxy chooses.
	From string
	// Bind is where this proxy listens for that, if it can't listen at From. Empty: From.
	Bind string

	// Name is what this proxy calls itself. Peers are the names of those that it talks to. Without an identity
	// all of this user on this machine are.
	Name  string
	Peers []string
	// TokenFile has a secret that both proxies know.
	TokenFile string
	// Certificate, Key and Authorities are files (PEM).
	Certificate, Key, Authorities string

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
	dir      string // of a socket that this proxy chose; may be empty
	warn     func(string)
}

// Check finds options that contradict each other.
func (o *Options) Check() error {
	_, here := strings.CutPrefix(o.Listen, "vmmc:")
	target, there := strings.CutPrefix(o.Target, "vmmc:")
	certified := o.Certificate != "" || o.Key != "" || o.Authorities != ""
	var err error
	switch {
	case here == there:
		return fmt.Errorf("one address of %s and %s must begin with vmmc: and not the other", o.Listen, o.Target)
	case certified && len(o.Peers) == 0:
		return errors.New("with a certificate, the names of peers are needed")
	case o.Bind != "" && (!there || o.From == ""):
		return errors.New("where to listen for a target of vmmc needs the address at which that reaches this proxy")
	case there && o.From != "":
		err = checkFrom(o.From, target)
	case there && !strings.HasPrefix(target, "unix:"):
		_, err = returnTo(target)
	}
	if o.Bind != "" && err == nil {
		err = checkBind(o.Bind, o.From)
	}
	for _, a := range []string{o.Listen, o.Target} {
		if _, _, bad := socketAddress(strings.TrimPrefix(a, "vmmc:")); err == nil {
			err = bad
		}
	}
	return err
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
	n, peers, err := o.identity()
	if err == nil && there {
		own, err = p.from(cmp.Or(o.Bind, o.From), target)
	}
	if err != nil {
		return err
	}
	n.Listen = []string{own}
	if p.node, err = vmmc.Open(n); err != nil {
		return err
	}
	s := stream.Options{Peers: peers, Warn: o.Warn}
	if there {
		s.Address = withPort(cmp.Or(o.From, own), p.node.Addresses()[0])
		p.dial = func(ctx context.Context) (net.Conn, error) { return stream.Dial(ctx, p.node, target, o.Service, s) }
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

// identity returns who this proxy is, and whom it talks to.
func (o *Options) identity() (n vmmc.Options, p vmmc.Permissions, err error) {
	n = vmmc.Options{Name: cmp.Or(o.Name, "proxy"), Warn: o.Warn}
	p.Peers = o.Peers
	switch {
	case len(o.Certificate)+len(o.Key)+len(o.Authorities) > 0:
		if n.Certificate, n.Authorities, err = vmmc.ReadCertificate(o.Certificate, o.Key, o.Authorities); err != nil {
			return n, p, err
		}
	case o.TokenFile != "":
		if n.Token, err = vmmc.ReadToken(o.TokenFile); err != nil {
			return n, p, err
		}
		if len(p.Peers) == 0 {
			p.Peers = []string{"proxy"}
		}
	case len(p.Peers) == 0:
		p.UIDs = []uint32{uint32(os.Geteuid())}
	}
	return n, p, nil
}

// from returns the address at which the proxy at target reaches this one.
func (p *Proxy) from(given, target string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case strings.HasPrefix(target, "unix:"):
		var err error
		p.dir, err = os.MkdirTemp("", "pinwheel-proxy-")
		return "unix:" + filepath.Join(p.dir, "s"), err
	}
	return returnTo(target)
}

// checkFrom finds addresses at which the proxy at target can't reach this one.
func checkFrom(from, target string) error {
	network, address, err := socketAddress(from)
	if err != nil {
		return err
	}
	if want, _, _ := strings.Cut(target, ":"); network != want {
		return fmt.Errorf("%s can't be reached from a proxy at %s", from, target)
	}
	if network == "unix" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		err = fmt.Errorf("%s is no address of this machine: give that with --from, and this with --bind", from)
	}
	return err
}

// checkBind finds addresses at which nobody who asks for the other one arrives.
func checkBind(bind, from string) error {
	network, _, err := socketAddress(bind)
	if want, _, _ := strings.Cut(from, ":"); err == nil && network != want {
		err = fmt.Errorf("%s can't be what others reach as %s", bind, from)
	}
	return err
}

// withPort returns an address with the port at which this proxy listens, if it has port 0.
func withPort(from, listens string) string {
	if name, zero := strings.CutSuffix(from, ":0"); zero && strings.HasPrefix(from, "tcp:") {
		return name + listens[strings.LastIndexByte(listens, ':'):]
	}
	return from
}

// returnTo returns an address of this machine, if the target is there.
func returnTo(target string) (string, error) {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(target, "tcp:"))
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("%s must reach this proxy: give its address here with --from tcp:HOST:PORT", target)
	}
	return "tcp:" + net.JoinHostPort(host, "0"), nil
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
	if p.dir != "" {
		errs = append(errs, os.RemoveAll(p.dir))
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
