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
	// ErrClosed: the connection was closed on this side.
	ErrClosed = errors.New("rc: connection is closed")
	// ErrPeerGone: the peer has closed the connection or died, and nothing of ours is outstanding.
	ErrPeerGone = errors.New("rc: peer is gone")
	// ErrFull: Options.Depth requests are outstanding; poll first.
	ErrFull = errors.New("rc: queue is full")
)

// Options of Connect.
type Options struct {
	// Depth is how many sends, and how many receives, may be outstanding. 128.
	Depth int
	// GID is the address of the device to use; by default the one that the
	// socket uses, or else the first that the peer is likely to reach.
	GID netip.Addr
}

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	o.Depth = cmp.Or(o.Depth, 128)
}

// What the queue pairs are set to; the numbers are codes of ibv_modify_qp(3).
const (
	maxReads      = 16 // RDMA reads under way at a time, if the devices can
	ackTimeout    = 16 // 4.096 us * 2^16 = 268 ms until a packet is sent again
	retries       = 7  // times, the most there is; rdma_rxe takes it for "without end". The socket tells of a dead peer.
	rnrForever    = 7  // a receiver that is not ready is retried without end
	rnrTimer      = 12 // after 640 us
	remoteRights  = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	sequenceRange = 1 << 24
)

// Conn is a connection. All methods are safe for concurrent use.
type Conn struct {
	sock net.Conn
	ch   *ibv.CompChannel
	cq   *ibv.CQ
	qp   *ibv.QP

	maxMessage uint64

	pending atomic.Int64  // requests posted and not yet polled
	gone    chan struct{} // closed when the socket fails: by the peer, or by Close
	watch   sync.WaitGroup
	closing atomic.Bool // Close was called; stored before life is taken for writing

	// waiting admits one waiter; it is taken before life and poll.
	waiting sync.Mutex
	events  *os.File // readable when the channel has an event

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
	o.EnsureDefaults()
	c := &Conn{sock: sock, gone: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = sock.SetDeadline(time.Unix(1, 0)) }) // ends the exchange below
	err := c.connect(p, o)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = sock.Close() // the error at hand is the one to tell
		return nil, errors.Join(fmt.Errorf("rc: connecting over %s: %w", p.Device().Info().Name, err), c.destroy())
	}
	c.watch.Go(c.watchPeer)
	return c, nil
}

func (c *Conn) connect(p *rdma.Provider, o Options) error {
	dev := p.Device()
	info, ctx := dev.Info(), dev.Verbs()
	port, err := ctx.QueryPort(info.Port)
	if err != nil {
		return os.NewSyscallError("ibv_query_port", err)
	}
	c.maxMessage = uint64(port.MaxMessage)
	from, gidBytes, err := c.source(info, o.GID, ctx)
	if err != nil {
		return err
	}
	if err := c.create(p, o.Depth); err != nil {
		return err
	}
	if err := c.qp.Init(info.Port, uint32(remoteRights)); err != nil {
		return os.NewSyscallError("ibv_modify_qp to INIT", err)
	}
	attr := dev.Attr()
	ours := endpoint{
		QP:    c.qp.Number(),
		PSN:   rand.Uint32N(sequenceRange),
		LID:   port.LID,
		MTU:   uint8(port.MTU),
		Reads: uint8(min(maxReads, attr.MaxRDAtom)),
		GID:   gidBytes,
	}
	theirs, err := swapEndpoints(c.sock, ours)
	if err != nil {
		return err
	}
	if err := c.qp.ReadyToReceive(ibv.Path{
		PeerQP: theirs.QP, PeerPSN: theirs.PSN, PeerLID: theirs.LID, PeerGID: theirs.GID,
		UseGID: port.Ethernet, GIDIndex: from.index, Port: info.Port,
		MTU: int(min(ours.MTU, theirs.MTU)), Reads: int(ours.Reads), RNRTimer: rnrTimer,
	}); err != nil {
		return os.NewSyscallError("ibv_modify_qp to RTR", err)
	}
	reads := min(maxReads, attr.MaxInitRD, int(theirs.Reads))
	if err := c.qp.ReadyToSend(ours.PSN, reads, ackTimeout, retries, rnrForever); err != nil {
		return os.NewSyscallError("ibv_modify_qp to RTS", err)
	}
	return barrier(c.sock) // a peer that is not ready to receive would lose our first request
}

// source chooses the GID to send from.
func (c *Conn) source(info rdma.DeviceInfo, want netip.Addr, ctx *ibv.Context) (gid, [16]byte, error) {
	table, err := readGIDs(os.DirFS(sysfsRoot()), info.Name, info.Port)
	if err != nil {
		return gid{}, [16]byte{}, err
	}
	var local netip.Addr
	if tcp, ok := c.sock.LocalAddr().(*net.TCPAddr); ok {
		local = tcp.AddrPort().Addr()
	}
	g, err := chooseGID(table, want, local)
	if err != nil {
		return gid{}, [16]byte{}, err
	}
	raw, err := ctx.GID(info.Port, g.index)
	return g, raw, os.NewSyscallError("ibv_query_gid", err)
}

// create makes the queues, children after parents.
func (c *Conn) create(p *rdma.Provider, depth int) (err error) {
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
	if c.qp, err = p.Verbs().CreateQP(c.cq, depth, depth); err != nil {
		return os.NewSyscallError("ibv_create_qp", err)
	}
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
	c.life.RLock()
	if !c.closed {
		_ = c.qp.Fail() // flushes what is outstanding; fails if the queue pair has failed by itself
	}
	c.life.RUnlock()
	close(c.gone)
	c.wake()
}

// wake makes a Wait look at what has changed.
func (c *Conn) wake() {
	_ = c.events.SetReadDeadline(time.Unix(1, 0)) // fails only if closed, when nobody waits
}

// Close ends the connection. Requests outstanding are abandoned, and their
// buffers are the caller's again.
func (c *Conn) Close() error {
	c.closing.Store(true)
	_ = c.sock.Close() // the peer learns of it either way
	c.watch.Wait()
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
