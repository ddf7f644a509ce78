package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/peer"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/tools/command"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
)

// endFlags say who one end of a transfer of files is, and whom it talks to.
type endFlags struct {
	Name string        `placeholder:"NAME" help:"What this end calls itself if no certificate says it. Default: files."`
	Peer command.Names `placeholder:"NAME,..." help:"Name of an end that this one talks to. Default: all of this user on this machine, or with a token those called files."`
	//lint:ignore SA5008 kong takes each set
	Identity identityFlags `embed:"" set:"all=both ends" set:"self=end" set:"others=the other ends"`
}

// bufferID is what ends are called that have no name of their own.
const bufferID = "files"

func (f *endFlags) end() peer.End {
	e := f.Identity.end()
	e.Name, e.Peers = f.Name, f.Peer
	return e
}

// transport is how the bytes of files go.
type transport string

// check finds addresses that a transport does not go to.
func (t transport) check(address string, trusted bool) error {
	overTCP := strings.HasPrefix(address, "tcp:")
	switch {
	case t == "rdma" && trusted:
		return command.Usagef("--trusted-network is for contents over TCP, and --transport rdma lets none go there")
	case t == "shm" && overTCP:
		return command.Usagef("--transport shm is for unix:SOCKET and node:NAME, and %s is neither", address)
	case (t == "tcp" || t == "rdma") && !overTCP:
		return command.Usagef("--transport %s is for HOST:PORT, and %s is shared memory", t, address)
	}
	return nil
}

// apply makes a node use it. It fails if it needs a device, and there is none.
func (t transport) apply(o *vmmc.Options) error {
	o.NoRDMA = t == "tcp" || t == "shm"
	if t != "rdma" {
		return nil
	}
	if err := rdma.Probe(); err != nil {
		why := strings.TrimSuffix(err.Error(), ": "+verbs.ErrUnsupported.Error()) // which is about other commands
		return fmt.Errorf("--transport rdma: %s: see pinwheel doctor, or give --transport auto", why)
	}
	return nil
}

// clientFlags say how a client reaches a server.
type clientFlags struct {
	Transport      transport     `enum:"auto,rdma,tcp,shm" default:"auto" help:"How file contents go: ${enum}. What can't go by the one that is named fails, also if only the server insists on it. Files of 64K and less go with requests and answers, over TCP if RDMA is down. Default: auto, the best that both ends have at the time."`
	TrustedNetwork bool          `help:"Let file contents come over TCP without encryption, if the server allows it, too: sendfile(2) is faster than TLS."`
	From           string        `placeholder:"ADDRESS" help:"Address at which the server reaches this command: tcp:HOST:PORT, by a name in its certificate if it has one. Port 0 lets the kernel choose. Default: chosen, on this machine."`
	Bind           string        `placeholder:"ADDRESS" help:"Where this command listens for that, if not there: behind a router that translates addresses, say. Default: as in --from."`
	Timeout        time.Duration `default:"10s" type:"seconds" placeholder:"TIME" help:"How long to wait for the server to answer at first, in seconds or with a unit. Default: 10s."`
	End            endFlags      `embed:""`
}

// connection is a client with what it stands on.
type connection struct {
	*files.Client
	node     *vmmc.Node
	callback *peer.Callback
	address  string
	options  files.ClientOptions
	insists  transport
}

// connect finds the server. It waits for one that is not there yet, or fails at once.
func (f *clientFlags) connect(
	ctx context.Context, e *command.Env, address string, waits bool,
) (c *connection, err error) {
	if f.Timeout <= 0 {
		return nil, command.Usagef("--timeout must be more than 0")
	}
	end := f.End.end()
	end.From, end.Bind = f.From, f.Bind
	if err := end.Check(address); err != nil {
		return nil, command.AsUsage(err)
	}
	if err := f.Transport.check(address, f.TrustedNetwork); err != nil {
		return nil, err
	}
	n, peers, err := end.Identity(bufferID)
	if err == nil {
		err = f.Transport.apply(&n)
	}
	if err != nil {
		return nil, err
	}
	c = &connection{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	if c.callback, err = end.Callback(address, bufferID); err != nil {
		return c, err
	}
	n.Listen, n.Warn = []string{c.callback.Listen}, func(m string) { e.Note("%s", m) }
	if c.node, err = vmmc.Open(n); err != nil {
		return c, err
	}
	within, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	c.address, c.options = address, files.ClientOptions{
		Peers: peers, Address: c.callback.Address(c.node), TrustedNetwork: f.TrustedNetwork,
		RequireRDMA: f.Transport == "rdma",
	}
	c.insists = f.Transport
	if !waits {
		err = c.node.Reach(within, address)
	}
	if err == nil {
		c.Client, err = c.dial(within)
	}
	switch {
	case err == nil:
	case errors.Is(err, files.ErrNoRDMA):
		err = callFault(address, err)
	case within.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("%s: no server answers within %v: is pinwheel serve running there, for this user or with this "+
			"token or certificate?%s", asTyped(address), f.Timeout, f.hint())
	default:
		err = f.dialFault(address, err)
	}
	return c, err
}

// hint says what else may be wrong if no server answers: it also connects to this end.
func (f *clientFlags) hint() string {
	if f.From == "" {
		return ""
	}
	return fmt.Sprintf(" Does it reach this command at %s (--from)?", f.From)
}

// errNoSharedMemory is why --transport shm fails.
var errNoSharedMemory = errors.New("--transport shm: the server and this command share no memory: " +
	"is it of another user, or has one of them too many files open?")

// dial connects. It fails if contents would not go the way that was named.
func (c *connection) dial(ctx context.Context) (*files.Client, error) {
	client, err := files.Dial(ctx, c.node, c.address, c.options)
	if err == nil && c.insists == "shm" && client.Transport() != files.ByMemory {
		return nil, errors.Join(errNoSharedMemory, client.Close())
	}
	return client, err
}

// redial connects again, after the server was lost. If it fails, the old client stays, closed.
func (c *connection) redial(ctx context.Context) (*files.Client, error) {
	_ = c.Client.Close() // it is of no use any more
	next, err := c.dial(ctx)
	if err == nil {
		c.Client = next
	}
	return next, err
}

// Close ends the connection.
func (c *connection) Close() error {
	var errs []error
	if c.Client != nil {
		errs = append(errs, c.Client.Close())
	}
	if c.node != nil {
		errs = append(errs, c.node.Close())
	}
	if c.callback != nil {
		errs = append(errs, c.callback.Close())
	}
	return errors.Join(errs...)
}
