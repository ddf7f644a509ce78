package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/rpc"
)

// ClientOptions configure a Client. Peers must be set.
type ClientOptions struct {
	// Service is the number that the server has. 0 stands for DefaultService.
	Service uint32
	// Peers say who the server may be. All whom they permit are trusted with memory of this process that is meant for the
	// server: each may import a window before the server does, and send into it, if it guesses the number, which is
	// random. So name one server where names are proved, by certificates; who knows a token can say any name.
	Peers vmmc.Permissions
	// Address is where the server finds the node of this client. Empty: the first of its addresses on the network of
	// the server.
	Address string
	// WindowBytes is how much may be on its way to this client, in the window that it exports. 0 stands for 32 MiB, or
	// for half of what this process may pin, if that is less and the window is for RDMA.
	WindowBytes int64
	// TrustedNetwork lets file bytes come over TCP without encryption, if the server allows it, too. The server sends
	// them with sendfile(2).
	TrustedNetwork bool
	// RequireRDMA has contents of files go by RDMA in both directions, or not at all: what can't fails with ErrNoRDMA
	// after some seconds, and so does Dial. What has SmallBytes and less is excepted, and comes inside of requests and
	// answers: files, and ranges of CopyRange and ReadAt. A server may require it, too.
	RequireRDMA bool
}

const minWindow = 1 << 20 // 1 MiB

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *ClientOptions) EnsureDefaults() error {
	o.Service = cmp.Or(o.Service, DefaultService)
	o.WindowBytes = cmp.Or(o.WindowBytes, 32<<20)
	if o.RequireRDMA && o.TrustedNetwork {
		return errInsistsOnTCP
	}
	if o.WindowBytes < minWindow {
		return fmt.Errorf("files: a window of %d bytes: it must have %d", o.WindowBytes, minWindow)
	}
	return nil
}

// Client reads and writes the files of a server. All methods are safe for concurrent use, and share one connection.
type Client struct {
	opt     ClientOptions
	node    *vmmc.Node
	address string // of the server
	calls   *rpc.Client
	room    chan struct{} // has a place for each request that may be under way
	welcome wire.Welcome
	insists bool      // contents go by RDMA, or not at all
	data    *dataPool // nil: no TCP without encryption
	local   *dataPool // nil: no descriptors of files
	own     sync.Map  // from each *ownFile that may be open
	way     atomic.String
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	window *Window
	slots  *slots // of the window
	stage  stage
	// memory is held for reading by whoever looks into the window: Close waits for it.
	memory sync.RWMutex
	hook   nodeHook

	requests, read, written atomic.Int64
}

// Dial connects to the server at an address of vmmc: unix:PATH, tcp:HOST:PORT or node:NAME. It waits for the server
// until ctx ends. The node must listen at an address that the server can reach. It fails with ErrVersion, with ErrNoRDMA
// if one of the ends insists on that, and with the errors of vmmc.Node.Import and stream.Dial.
func Dial(ctx context.Context, n *vmmc.Node, address string, o ClientOptions) (*Client, error) {
	chosen := o.WindowBytes == 0
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	if chosen && strings.HasPrefix(address, "tcp:") {
		o.WindowBytes = pinnableWindow(n, o.WindowBytes)
	}
	calls, err := rpc.Dial(ctx, n, address, o.Service, streamOptions(o.Peers, o.Address, nil), rpcOptions())
	if err != nil {
		return nil, err
	}
	c := &Client{opt: o, node: n, address: address, calls: calls, room: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err = c.greet(ctx); err == nil {
		err = c.hook.set(n, func() { _ = c.Close() }) // what it fails with ends with the node
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// pinnableWindow is a window of most bytes or fewer that the device of a node, if it has one, can register beside all
// else: one that is too large for RLIMIT_MEMLOCK would have everything go through the connection.
func pinnableWindow(n *vmmc.Node, most int64) int64 {
	p, err := n.Provider()
	if err != nil {
		return most
	}
	return max(min(most, p.Limits().MaxPinnedBytes/2)&^(minWindow-1), minWindow)
}

// greet says hello, and offers the window.
func (c *Client) greet(ctx context.Context) error {
	q := wire.Hello{Version: wire.Version, Trusted: c.opt.TrustedNetwork, RDMA: c.opt.RequireRDMA}
	if _, err := c.call(ctx, wire.ProcHello, "dial", c.address, &q, &c.welcome); err != nil {
		return err
	}
	if c.welcome.Version != wire.Version {
		return fmt.Errorf("%w: %d", ErrVersion, c.welcome.Version)
	}
	if c.welcome.Calls < 1 {
		return fmt.Errorf("%w: no calls are allowed", ErrProtocol)
	}
	c.room = make(chan struct{}, min(c.welcome.Calls, maxCalls))
	c.insists = c.opt.RequireRDMA || c.welcome.RDMA
	at, tcp := strings.CutPrefix(c.address, "tcp:")
	host, _, err := net.SplitHostPort(at)
	if port := c.welcome.DataPort; c.opt.TrustedNetwork && port > 0 && err == nil && tcp {
		c.data = &dataPool{network: "tcp", address: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	}
	if c.window, err = c.NewWindow(ctx, c.opt.WindowBytes); err != nil {
		return err
	}
	c.slots = newSlots(c.opt.WindowBytes, windowSlots)
	if c.welcome.Socket != "" && c.way.Load() == ByMemory {
		c.local = &dataPool{network: "unix", address: c.welcome.Socket}
	}
	return c.insist(ctx)
}

// call calls a procedure. bytes is how many were moved before it failed. name is for errors.
func (c *Client) call(
	ctx context.Context, procedure uint32, op, name string, q, a wire.Message,
) (bytes int64, err error) {
	var reply []byte
	return c.callInto(ctx, procedure, op, name, q, a, &reply)
}

// callInto is call with memory for the reply, of which a has parts then.
func (c *Client) callInto(
	ctx context.Context, procedure uint32, op, name string, q, a wire.Message, memory *[]byte,
) (bytes int64, err error) {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return 0, c.closedOr(context.Cause(ctx))
	case <-c.ctx.Done():
		return 0, ErrClosed
	}
	defer func() { <-c.room }()
	c.requests.Inc()
	request := wire.Append(nil, q)
	reply, err := c.calls.Call(ctx, procedure, request, (*memory)[:0])
	for errors.Is(err, rpc.ErrTooMany) && ctx.Err() == nil { // those that were given up have not all ended
		time.Sleep(crowded)
		reply, err = c.calls.Call(ctx, procedure, request, (*memory)[:0])
	}
	if err != nil {
		return 0, c.closedOr(callError(err))
	}
	*memory = reply
	s, rest, err := wire.Split(reply)
	if err == nil && s.Code != 0 {
		return s.Bytes, errorOf(op, name, &s)
	}
	if err == nil {
		err = wire.Decode(rest, a)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return 0, nil
}

// importOf imports an export of the server, for which it waits no longer than it is connected: the exports of a server
// that comes back are others.
func (c *Client) importOf(ctx context.Context, id uint32) (*vmmc.Import, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.calls.Gone():
			cancel(vmmc.ErrPeerGone)
		case <-ctx.Done():
		}
	}()
	in, err := c.node.Import(ctx, id, c.address)
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, ErrClosed
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return in, err
}

// closedOr returns ErrClosed for what was given up because the client was closed, and else err.
func (c *Client) closedOr(err error) error {
	if c.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

// closed fails if the client was closed.
func (c *Client) closed() error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// Close ends the connection. Calls that wait fail with ErrClosed. Uploads that were not committed end as with
// Upload.Close.
func (c *Client) Close() error {
	c.cancel()
	c.hook.forget()
	err := c.calls.Close()
	for _, p := range []*dataPool{c.data, c.local} {
		if p != nil {
			p.close()
		}
	}
	c.own.Range(func(o, _ any) bool {
		o.(*ownFile).close()
		return true
	})
	c.stage.close()
	if c.window != nil {
		c.memory.Lock() // those who come later find the client closed
		defer c.memory.Unlock()
		err = errors.Join(err, c.window.free())
	}
	return err
}

// Transport says which way the bytes of files come at present: ByRDMA, ByMemory, ByTLS, or BySendfile, which does not
// encrypt.
func (c *Client) Transport() string {
	way := c.way.Load()
	if way == ByTLS && c.data != nil {
		return BySendfile
	}
	return way
}

// Writable reports whether the server takes uploads.
func (c *Client) Writable() bool { return c.welcome.Writable }

// Stats returns what this client has moved so far.
func (c *Client) Stats() ClientStats {
	return ClientStats{Requests: c.requests.Load(), BytesRead: c.read.Load(), BytesWritten: c.written.Load()}
}

// slots are parts of memory that one end sends into and the other reads. Each has one user at a time.
type slots struct {
	bytes int64 // of each
	free  chan int64
}

func newSlots(bytes int64, n int64) *slots {
	s := &slots{bytes: bytes / n, free: make(chan int64, n)}
	for i := range n {
		s.free <- i * s.bytes
	}
	return s
}

// take waits for a slot, and returns where it begins.
func (s *slots) take(ctx, closed context.Context) (int64, error) {
	select {
	case at := <-s.free:
		return at, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-closed.Done():
		return 0, ErrClosed
	}
}

// tryTake returns a slot if one is free.
func (s *slots) tryTake() (at int64, ok bool) {
	select {
	case at := <-s.free:
		return at, true
	default:
		return 0, false
	}
}

// give gives a slot back: nobody sends into it or reads from it.
func (s *slots) give(at int64) { s.free <- at }
