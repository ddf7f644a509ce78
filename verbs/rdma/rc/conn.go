//go:build linux && cgo

package rc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"go.uber.org/atomic"

	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/internal/ibv"
)

var (
	// ErrClosed means that the connection was closed on this side.
	ErrClosed = errors.New("rc: connection is closed")
	// ErrPeerGone means that the peer has closed the connection or died, and nothing of ours is outstanding.
	ErrPeerGone = errors.New("rc: peer is gone")
	// ErrFull means that Options.Depth requests are outstanding: poll first.
	ErrFull = errors.New("rc: queue is full")
)

// Options of Connect.
type Options struct {
	// Depth is how many sends, and how many receives, may be outstanding. 128.
	Depth int
	// GID is the address of the device to use; by default the one that the
	// socket uses, or else the first that the peer is likely to reach.
	GID netip.Addr
	// Rights are what the peer may do with memory of the protection domain: an
	// OR of verbs.AccessRemoteWrite and its like, 0 for all of them, NoRights for none.
	Rights verbs.Access
	// Retries is how often a packet that is not answered is sent again, after 268 ms each time, before the
	// queue pair fails. 0 stands for 7, the most there is; rdma_rxe takes that for "without end".
	Retries uint8
	// Inline is how many bytes of a write or a send can be copied when that is posted:
	// see Local.Inline. 0 for none.
	Inline int
}

// NoRights is the value of Options.Rights with which the peer reaches no memory.
const NoRights = verbs.AccessLocalWrite

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	o.Depth = cmp.Or(o.Depth, 128)
	o.Rights = cmp.Or(o.Rights, remoteRights)
	o.Retries = cmp.Or(o.Retries, maxRetries)
}

// What the queue pairs are set to; the numbers are codes of ibv_modify_qp(3).
const (
	maxReads      = 16 // RDMA reads under way at a time, if the devices can
	ackTimeout    = 16 // 4.096 us * 2^16 = 268 ms until a packet is sent again
	maxRetries    = 7  // times. The socket tells of a dead peer.
	rnrForever    = 7  // a receiver that is not ready is retried without end
	rnrTimer      = 12 // after 640 us
	remoteRights  = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	sequenceRange = 1 << 24
)

// Conn is a connection. All methods are safe for concurrent use.
type Conn struct {
	sock net.Conn // nil: the caller connects by Endpoint and Ready, and tells of the peer's end by Fail
	ch   *ibv.CompChannel
	cq   *ibv.CQ
	qp   *ibv.QP

	port     ibv.PortAttr
	portNum  uint8
	gidIndex int
	reads    int // RDMA reads that this side may have under way
	retries  uint8
	inline   uint64 // bytes
	ours     endpoint

	pending atomic.Int64  // requests posted and not yet polled
	failing sync.Once     // Fail
	gone    chan struct{} // closed by Fail
	watch   sync.WaitGroup
	closing atomic.Bool // Close was called; stored before life is taken for writing

	// waiting admits one waiter; it is taken before life and poll.
	waiting     sync.Mutex
	interrupted atomic.Bool // Interrupt was called
	events      *os.File    // readable when the channel has an event

	// life is held for reading by every call into the library, for writing by
	// Close; taken before poll.
	life   sync.RWMutex
	closed bool

	// poll protects cq's batch; a leaf lock.
	poll sync.Mutex
}

// Connect brings up a queue pair with the process at the other end of sock,
// which must call it as well. It takes sock over, and closes it if it fails.
func Connect(ctx context.Context, sock net.Conn, p *rdma.Provider, o Options) (*Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = sock.SetDeadline(time.Unix(1, 0)) }) // ends the exchange below
	c, err := connect(sock, p, o)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = sock.Close() // the error at hand is the one to tell
		err = fmt.Errorf("rc: connecting over %s: %w", p.Device().Info().Name, err)
		if c != nil {
			err = errors.Join(err, c.destroy())
		}
		return nil, err
	}
	c.sock = sock
	c.watch.Go(c.watchPeer)
	return c, nil
}

// connect returns the queue pair also if it can't be connected.
func connect(sock net.Conn, p *rdma.Provider, o Options) (*Conn, error) {
	var local netip.Addr
	if tcp, ok := sock.LocalAddr().(*net.TCPAddr); ok {
		local = tcp.AddrPort().Addr()
	}
	c, err := New(p, local, o)
	if err != nil {
		return nil, err
	}
	theirs, err := swapEndpoints(sock, c.ours)
	if err == nil {
		err = c.ready(theirs)
	}
	if err == nil {
		err = barrier(sock) // a peer that is not ready to receive would lose our first request
	}
	return c, err
}

// New makes a queue pair for a caller that has its own way to the peer: each side gives its Endpoint to the other
// side's Ready. Nobody may post before both are ready. The caller learns by itself of the peer's end, and calls Fail
// then. local is the address at which this machine reaches the peer, if that is known: see Options.GID.
func New(p *rdma.Provider, local netip.Addr, o Options) (*Conn, error) {
	o.EnsureDefaults()
	c := &Conn{gone: make(chan struct{}), retries: o.Retries}
	if err := c.open(p, local, o); err != nil {
		return nil, errors.Join(err, c.destroy())
	}
	return c, nil
}

func (c *Conn) open(p *rdma.Provider, local netip.Addr, o Options) error {
	dev := p.Device()
	info, ctx := dev.Info(), dev.Verbs()
	port, err := ctx.QueryPort(info.Port)
	if err != nil {
		return os.NewSyscallError("ibv_query_port", err)
	}
	table, err := readGIDs(os.DirFS(sysfsRoot()), info.Name, info.Port)
	if err != nil {
		return err
	}
	from, err := chooseGID(table, o.GID, local)
	if err != nil {
		return err
	}
	raw, err := ctx.GID(info.Port, from.index)
	if err != nil {
		return os.NewSyscallError("ibv_query_gid", err)
	}
	if err := c.create(p, o.Depth, o.Inline); err != nil {
		return err
	}
	if err := c.qp.Init(info.Port, uint32(o.Rights)); err != nil {
		return os.NewSyscallError("ibv_modify_qp to INIT", err)
	}
	attr := dev.Attr()
	c.port, c.portNum, c.gidIndex, c.reads = port, info.Port, from.index, min(maxReads, attr.MaxInitRD)
	c.ours = endpoint{
		QP:    c.qp.Number(),
		PSN:   rand.Uint32N(sequenceRange),
		LID:   port.LID,
		MTU:   uint8(port.MTU),
		Reads: uint8(min(maxReads, attr.MaxRDAtom)),
		GID:   raw,
	}
	return nil
}

// Endpoint returns what the peer's Ready needs: EndpointBytes bytes.
func (c *Conn) Endpoint() []byte { return c.ours.encode() }

// Ready connects a queue pair of New with the peer whose Endpoint that is.
func (c *Conn) Ready(peer []byte) error {
	theirs, err := decodeEndpoint(peer)
	if err != nil {
		return fmt.Errorf("rc: %w", err)
	}
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed {
		return ErrClosed
	}
	return c.ready(theirs)
}

func (c *Conn) ready(theirs endpoint) error {
	if err := c.qp.ReadyToReceive(ibv.Path{
		PeerQP: theirs.QP, PeerPSN: theirs.PSN, PeerLID: theirs.LID, PeerGID: theirs.GID,
		UseGID: c.port.Ethernet, GIDIndex: c.gidIndex, Port: c.portNum,
		MTU: int(min(c.ours.MTU, theirs.MTU)), Reads: int(c.ours.Reads), RNRTimer: rnrTimer,
	}); err != nil {
		return os.NewSyscallError("ibv_modify_qp to RTR", err)
	}
	if err := c.qp.ReadyToSend(c.ours.PSN, min(c.reads, int(theirs.Reads)), ackTimeout, c.retries, rnrForever); err != nil {
		return os.NewSyscallError("ibv_modify_qp to RTS", err)
	}
	return nil
}

// create makes the queues, children after parents.
func (c *Conn) create(p *rdma.Provider, depth, inline int) (err error) {
	ctx := p.Device().Verbs()
	if c.ch, err = ctx.CreateCompChannel(); err != nil {
		return os.NewSyscallError("ibv_create_comp_channel", err)
	}
	if c.events, err = c.ch.File(); err != nil {
		return os.NewSyscallError("fcntl of the completion channel", err)
	}
	if c.cq, err = ctx.CreateCQ(2*depth, c.ch); err != nil {
		return os.NewSyscallError("ibv_create_cq", err)
	}
	c.qp, err = p.Verbs().CreateQP(c.cq, depth, depth, inline)
	if err != nil && inline > 0 { // more than the device can
		c.qp, err = p.Verbs().CreateQP(c.cq, depth, depth, 0)
	}
	if err != nil {
		return os.NewSyscallError("ibv_create_qp", err)
	}
	c.inline = min(uint64(inline), c.qp.MaxInline())
	return nil
}

// destroy undoes create, also half of it. Nothing may be in use.
func (c *Conn) destroy() error {
	var errs []error
	if c.qp != nil {
		errs = append(errs, os.NewSyscallError("ibv_destroy_qp", c.qp.Destroy()))
	}
	if c.cq != nil {
		errs = append(errs, os.NewSyscallError("ibv_destroy_cq", c.cq.Destroy()))
	}
	if c.events != nil {
		errs = append(errs, c.events.Close())
	}
	if c.ch != nil {
		errs = append(errs, os.NewSyscallError("ibv_destroy_comp_channel", c.ch.Destroy()))
	}
	return errors.Join(errs...)
}

// watchPeer reads the socket, on which nothing comes any more, until it fails.
func (c *Conn) watchPeer() {
	for err := error(nil); err == nil; {
		_, err = c.sock.Read(make([]byte, 1))
	}
	c.Fail()
}

// Fail ends the queue pair: what is outstanding completes as flushed, and then Wait
// fails with ErrPeerGone. The peer does not learn of it.
func (c *Conn) Fail() {
	c.failing.Do(func() {
		c.life.RLock()
		if !c.closed {
			_ = c.qp.Fail() // fails if the queue pair has failed by itself
		}
		c.life.RUnlock()
		close(c.gone)
		c.wake()
	})
}

// wake makes a Wait look at what has changed.
func (c *Conn) wake() {
	_ = c.events.SetReadDeadline(time.Unix(1, 0)) // fails only if closed, when nobody waits
}

// Close ends the connection. Requests outstanding are abandoned, and their
// buffers are the caller's again.
func (c *Conn) Close() error {
	c.closing.Store(true)
	if c.sock != nil {
		_ = c.sock.Close() // the peer learns of it either way
	}
	c.watch.Wait()
	c.Fail()
	c.wake()
	c.waiting.Lock() // the last waiter has left
	defer c.waiting.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.destroy()
}
