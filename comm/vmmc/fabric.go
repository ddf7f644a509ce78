package vmmc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"pinwheel"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// fabric is the RDMA device of a node, and the Manager that registers what is sent through it.
type fabric struct {
	// setup protects these; it is taken before Node.mu.
	setup   sync.Mutex
	opened  bool
	device  device
	err     error             // why there is no device
	manager *pinwheel.Manager // set under mu, too

	unregistered sync.Once // a source could not be, and a line said so

	// mu is a leaf.
	mu     sync.Mutex
	idle   []*pinwheel.Thread
	uses   int           // of memory and of Threads
	closed bool          // no use begins
	unused chan struct{} // closed when the last use ends after that
}

// open returns the device, which it opens at its first call.
func (f *fabric) open(n *Node) (device, error) {
	f.setup.Lock()
	defer f.setup.Unlock()
	if !f.opened && f.err == nil {
		f.opened = true
		f.device, f.err = nil, error(verbs.ErrUnsupported)
		if !n.opt.NoRDMA {
			f.device, f.err = openDevice(n.opt.Manager.RDMADevice)
		}
		if f.err != nil && !errors.Is(f.err, verbs.ErrUnsupported) {
			n.warn("messages go through connections: %v", f.err)
		}
	}
	return f.device, f.err
}

// Provider returns what registers memory for the messages that this node sends by RDMA. A Manager of the caller can use
// it, for SendOptions.Registered; it must be closed before the node. Provider opens the device with its first call, and
// fails without one, with verbs.ErrUnsupported if there is none or Options.NoRDMA is set.
func (n *Node) Provider() (verbs.Provider, error) {
	dev, err := n.fabric.open(n)
	if err != nil {
		return nil, err
	}
	return dev.Provider(), nil
}

// manage makes the Manager, once. A source may be memory of Go's heap, whose pages come and go: the
// Manager has to watch mappings.
func (f *fabric) manage(n *Node) error {
	f.setup.Lock()
	defer f.setup.Unlock()
	if f.manager != nil || f.err != nil {
		return f.err
	}
	o := n.opt.Manager
	o.Provider = f.device.Provider()
	if o.Watch == "" {
		o.Watch = "auto"
	}
	if o.Warn == nil {
		o.Warn = n.opt.Warn
	}
	m, err := pinwheel.New(o)
	if err != nil {
		return fmt.Errorf("registering what is sent: %w", err)
	}
	f.mu.Lock()
	f.manager = m
	f.mu.Unlock()
	return nil
}

// thread lends a Thread of the Manager. After close, only those who release memory get one.
func (f *fabric) thread(releases bool) (*pinwheel.Thread, error) {
	f.mu.Lock()
	if f.manager == nil || f.closed && !releases {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	f.uses++
	if k := len(f.idle); k > 0 {
		t := f.idle[k-1]
		f.idle = f.idle[:k-1]
		f.mu.Unlock()
		return t, nil
	}
	m := f.manager
	f.mu.Unlock()
	t, err := m.Thread()
	if err != nil {
		f.giveBack(nil, 1)
	}
	return t, err
}

// giveBack takes a Thread back, if there is one, and ends some uses.
func (f *fabric) giveBack(t *pinwheel.Thread, uses int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t != nil {
		f.idle = append(f.idle, t)
	}
	if f.uses -= uses; f.uses == 0 && f.unused != nil {
		close(f.unused)
		f.unused = nil
	}
}

// invalidate must be called before memory of this package that was sent from is unmapped.
func (f *fabric) invalidate(r mem.Range) error {
	f.mu.Lock()
	m := f.manager
	f.mu.Unlock()
	return m.Invalidate(r)
}

// close ends the Manager and the device. All queue pairs are closed. A Send that has not noticed so far gives back what
// it uses. The Manager may warn the program, which may ask the node something: no lock of a node is held.
func (f *fabric) close() error {
	f.setup.Lock()
	defer f.setup.Unlock()
	f.mu.Lock()
	f.closed = true
	var unused chan struct{}
	if f.uses > 0 {
		unused = make(chan struct{})
		f.unused = unused
	}
	f.mu.Unlock()
	if unused != nil {
		<-unused
	}
	f.mu.Lock()
	idle, manager := f.idle, f.manager
	f.idle, f.manager = nil, nil
	f.mu.Unlock()
	var errs []error
	for _, t := range idle {
		t.Close()
	}
	if manager != nil {
		errs = append(errs, manager.Close())
	}
	if f.device != nil {
		errs = append(errs, f.device.Close())
	}
	f.device, f.err = nil, ErrClosed
	return errors.Join(errs...)
}

// Kinds of communication, as the predictor tells them apart.
const (
	opSend pinwheel.Op = iota + 1
	opUpdate
	opCopy
)

// Call sites that are not those of callers.
var (
	updateSite     = pinwheel.NewSite("automatic update")
	copySite       = pinwheel.NewSite("copies of short messages")
	registeredSite = pinwheel.NewSite("messages from memory that the caller has registered")
)

// source is the memory that a message is sent from, registered just in time.
type source struct {
	use  pinwheel.Use
	site pinwheel.Site
	held bool
}

// acquire registers the memory that an op is sent from, but for pieces that are copied. All pieces of an update
// come from one twin.
func (f *fabric) acquire(op *Op) error {
	var r mem.Range
	for _, p := range op.rest {
		q := mem.RangeOf(p.src)
		switch {
		case q.Len() <= copyBytes:
		case r.Empty():
			r = q
		default:
			r.Start, r.End = min(r.Start, q.Start), max(r.End, q.End)
		}
	}
	if r.Empty() {
		return nil
	}
	if op.update {
		return f.use(&op.from, r, opUpdate)
	}
	return f.use(&op.from, r, opSend)
}

// use registers memory.
func (f *fabric) use(s *source, r mem.Range, kind pinwheel.Op) error {
	t, err := f.thread(false)
	if err != nil {
		return err
	}
	if err := t.Acquire(&s.use, r, 0, kind, &s.site); err != nil {
		f.giveBack(t, 1)
		return err
	}
	f.giveBack(t, 0) // the use is that of the memory now
	s.held = true
	return nil
}

// release ends the use of memory, if there is one.
func (f *fabric) release(s *source) {
	if !s.held {
		return
	}
	s.held = false
	t, err := f.thread(true)
	if err != nil {
		f.giveBack(nil, 1) // it stays registered until the Manager closes
		return
	}
	t.Release(&s.use)
	f.giveBack(t, 2)
}

// localAddr is the address of this machine on a connection, if it has one.
func localAddr(c net.Conn) netip.Addr {
	if tcp, ok := c.LocalAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}
