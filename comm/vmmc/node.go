package vmmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/comm/vmmc/internal/lease"
	"pinwheel/comm/vmmc/internal/limit"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/unixsocket"
)

// Node is a process that exports and imports memory. All methods are safe for concurrent use.
type Node struct {
	opt       Options
	listeners []net.Listener
	// ctx ends with Close.
	ctx   context.Context
	close context.CancelFunc
	tasks sync.WaitGroup // goroutines; none begins once closed is set

	warnings limit.Warnings // of what this process does
	ofPeers  limit.Warnings // of what peers and strangers do

	// mu protects what follows. It is taken after Import.mu, and before outbound.mu.
	mu         sync.Mutex
	closed     bool
	exporter   *protocol.Exporter
	lessor     *lease.Lessor
	inbound    map[protocol.Link]*inbound
	lastLink   protocol.Link
	accepted   int                // connections whose peers have proved who they are
	handshakes identity.Strangers // the others
	exports    map[uint32]*Export
	outbound   map[string]*dialing // by address
	blocks     []*block
	proxies    []proxy
	stranded   []net.Conn       // see outbound.strand
	total      broker.Totals    // without what is exported and imported now
	hooks      map[*func()]bool // of OnClose

	tracker tracker
	fabric  fabric
}

// Open makes a Node and listens at its addresses. It fails if the options make no sense, or if there is no
// identity for an address.
func Open(o Options) (*Node, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	n := &Node{
		opt: o, inbound: map[protocol.Link]*inbound{}, exports: map[uint32]*Export{}, outbound: map[string]*dialing{},
	}
	n.ctx, n.close = context.WithCancel(context.Background())
	n.lessor = lease.NewLessor((*lessorDriver)(n), lease.Limits{Bytes: o.MaxPinned, PeerBytes: o.MaxPeerPinned})
	n.exporter = protocol.NewExporter((*exporterDriver)(n))
	for _, a := range o.Listen {
		if err := n.listen(a); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

func (n *Node) listen(address string) error {
	e, err := n.endpoint(address)
	if err != nil {
		return err
	}
	var l net.Listener
	switch e.network {
	case "unix":
		l, err = unixsocket.Listen(e.network, e.address)
	case "node":
		l, err = n.register(e)
	default:
		l, err = net.Listen(e.network, e.address)
	}
	if err != nil {
		return fmt.Errorf("vmmc: %w", err)
	}
	n.listeners = append(n.listeners, l)
	n.tasks.Go(func() { n.accept(l, e) })
	return nil
}

// Addresses returns where importers find this node: those of Options.Listen, with the ports that the
// kernel chose for port 0.
func (n *Node) Addresses() (a []string) {
	for _, l := range n.listeners {
		a = append(a, l.Addr().Network()+":"+l.Addr().String())
	}
	return a
}

// Close ends all exports, imports and connections, waits for handlers, and frees the memory of Alloc, which
// must not be touched any more. Messages of SendAsync that have not been sent out are lost. A handler must not
// call it. A second Close does nothing.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	var out []*outbound
	for _, d := range n.outbound {
		if d.out != nil {
			out = append(out, d.out)
		}
	}
	for _, e := range n.exports {
		e.stir()
	}
	hooks := n.hooks
	n.hooks = nil
	n.mu.Unlock()
	var errs []error
	for _, l := range n.listeners {
		errs = append(errs, l.Close())
	}
	var hooked sync.WaitGroup
	for f := range hooks {
		hooked.Go(*f)
	}
	hooked.Wait()
	for _, o := range out {
		o.close()
	}
	n.close()
	n.tasks.Wait()
	return errors.Join(append(errs, n.free(), n.fabric.close())...)
}

// free frees what a node has that is closed, and of which nothing runs any more.
func (n *Node) free() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for id, e := range n.exports {
		e.unreturned = false // its memory goes away as a whole
		_ = n.exporter.Unexport(id)
	}
	for _, b := range n.blocks {
		errs = append(errs, b.free())
	}
	n.blocks = nil
	for _, c := range n.stranded {
		errs = append(errs, c.Close())
	}
	n.stranded = nil
	return errors.Join(append(errs, n.tracker.close())...)
}

// OnClose makes Close call f, in a goroutine of its own, and wait for it. What is imported can still be sent to
// then, and the memory of Alloc is there. stop makes the call unneeded. It fails with ErrClosed.
func (n *Node) OnClose(f func()) (stop func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if n.hooks == nil {
		n.hooks = map[*func()]bool{}
	}
	n.hooks[&f] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.hooks, &f)
	}, nil
}

// spawn runs f in a goroutine that Close waits for. n.mu is held. It returns ErrClosed if there is nothing
// to wait for it any more.
func (n *Node) spawn(f func()) error {
	if n.closed {
		return ErrClosed
	}
	n.tasks.Go(f)
	return nil
}

// warn says what is wrong in this process.
func (n *Node) warn(format string, args ...any) {
	n.warnings.Say(n.opt.Warn, fmt.Sprintf(format, args...))
}

// warnOfPeer says what a peer or a stranger did. They can't silence what warn says.
func (n *Node) warnOfPeer(format string, args ...any) {
	n.ofPeers.Say(n.opt.Warn, fmt.Sprintf(format, args...))
}

// exporterDriver is a Node as its protocol.Exporter sees it. n.mu is held in its methods.
type exporterDriver Node

// Send queues a frame for an importer. What a grant of shared memory needs goes along with it. Credits go into the
// ring, if there is one.
func (d *exporterDriver) Send(to protocol.Link, f *wire.Frame) {
	in := d.inbound[to]
	if f.Type == wire.Deny {
		d.total.Refused++
	}
	if r := in.rings[f.Number]; f.Type == wire.Credit && r != nil {
		r.gave += f.Count
		if !r.give(r.gave) {
			return
		}
		f = &wire.Frame{Type: wire.Credit, Number: f.Number}
	}
	var fds []int
	if f.Type == wire.Grant && !f.Shared {
		in.granted[f.Number] = f.Export
	}
	if f.Shared {
		fds = in.sharing.fds
		in.sharing.reader.start(f.Number)
		in.sharing = nil
	}
	in.send(f, fds)
}

// Gone frees what an export held, and wakes those who wait for that.
func (d *exporterDriver) Gone(id uint32) {
	e := d.exports[id]
	delete(d.exports, id)
	d.total.Received.Add(e.counts)
	if e.late != nil {
		e.late.Stop()
	}
	e.ended = true
	e.signal()
	e.stir()
	if e.events != 0 {
		unix.Close(e.events)
		e.events = 0
	}
	if !e.unreturned || (*Node)(d).spawn(e.renew) != nil { // a node that closes unmaps its memory as a whole
		e.finish(nil)
	}
}
