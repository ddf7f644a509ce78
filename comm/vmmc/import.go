package vmmc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/wire"
)

// Import is an export of another node, to which this one can send (§4.1). All methods are safe for
// concurrent use.
type Import struct {
	link   *outbound
	number uint64
	export uint32
	ready  chan struct{} // closed when it was granted, or has ended
	ended  chan struct{}

	// These are set before ready is closed.
	bytes  uint64
	shared bool // with this process; else messages go through the connection

	over atomic.Bool // there is an err: copies look here

	sends, sentBytes atomic.Uint64 // messages

	// link.mu protects what follows.
	err       error  // why nothing can be sent
	errors    uint64 // messages that failed
	notifying []*Op  // that wait for a credit
	ring      *ring  // nil: notifications go through the connection
	credited  uint64 // credits that were taken out of the ring, ever
	bell      int    // of the ring
	remote    remoteRegion
	answered  chan struct{} // closed when the exporter has answered about a lease; nil: nobody waits for it
	lessee    *rdmaSender   // whose Holder knows the import
	writing   int           // messages by RDMA that are on their way
	shorts    int           // of these, those that Send has told to be sent
	lent      bool          // the lease is in use by short messages
	lentNs    int64         // since when
	releasing bool          // once none of these is

	// mu lets the memory be unmapped after the last copy into it. It is taken before all other locks.
	mu       sync.RWMutex
	memory   *importedMemory // nil: not shared, or not any more
	mappings []*Mapping
}

// Import asks the node at an address for its export id and waits for that: until the exporter is there, and
// until it exports. It fails with ErrNotPermitted or ErrTooManyImporters if the exporter refuses, with
// ErrPeerGone if the exporter ends after it was found, and with the error of ctx.
func (n *Node) Import(ctx context.Context, id uint32, exporter string) (*Import, error) {
	i, err := n.ask(ctx, id, exporter)
	if err != nil {
		return nil, err
	}
	select {
	case <-i.ready:
	case <-ctx.Done():
		i.Unimport()
		return nil, fmt.Errorf("vmmc: export %d of %s: %w", id, exporter, ctx.Err())
	}
	if err := i.Err(); err != nil {
		return nil, err
	}
	return i, nil
}

// ask sends the request, through another connection if this one was just given up.
func (n *Node) ask(ctx context.Context, id uint32, exporter string) (*Import, error) {
	for {
		o, err := n.connect(ctx, exporter)
		if err != nil {
			return nil, err
		}
		i, err := o.begin(id)
		if !errors.Is(err, errSpare) {
			return i, err
		}
	}
}

// Importing is an import that ImportAsync has begun.
type Importing struct {
	done   chan struct{}
	cancel context.CancelFunc
	result *Import
	err    error
}

// ImportAsync begins an Import and returns its handle. Whoever loses interest should Cancel it.
func (n *Node) ImportAsync(id uint32, exporter string) *Importing {
	ctx, cancel := context.WithCancel(n.ctx)
	h := &Importing{done: make(chan struct{}), cancel: cancel}
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.spawn(func() {
		defer close(h.done)
		defer cancel()
		h.result, h.err = n.Import(ctx, id, exporter)
	})
	if err != nil {
		cancel()
		h.err = err
		close(h.done)
	}
	return h
}

// Done is closed when the import has been granted, or has failed.
func (h *Importing) Done() <-chan struct{} { return h.done }

// Result waits for the end and returns what Import would.
func (h *Importing) Result() (*Import, error) {
	<-h.done
	return h.result, h.err
}

// Cancel gives the import up. If it has been granted already, it stays so.
func (h *Importing) Cancel() { h.cancel() }

// begin sends the request.
func (o *outbound) begin(id uint32) (*Import, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil {
		return nil, o.down
	}
	o.needed()
	i := &Import{link: o, export: id, ready: make(chan struct{}), ended: make(chan struct{})}
	i.number = o.importer.Import(id)
	o.imports[i.number] = i
	return i, nil
}

// granted makes the import ready. It takes the descriptors over. link.mu is held.
func (i *Import) granted(f *wire.Frame, fds []int) (err error) {
	i.bytes = f.Bytes
	if len(fds) > 0 {
		err := checkBell(fds[2])
		var ring *ring
		if err == nil {
			ring, err = mapRing(fds[1], f.Count)
		}
		unix.Close(fds[1])
		if err != nil {
			closeAll([]int{fds[0], fds[2]})
			return err
		}
		i.ring, i.bell = ring, fds[2] // end unmaps and closes them
		if i.memory, err = mapImported(fds[0], f.Offset, f.Bytes); err != nil {
			return err
		}
		i.shared = true
	}
	i.lease()
	close(i.ready)
	return nil
}

// credit takes the credits that are in the ring. If notifications wait for more, it asks to hear of these. link.mu is
// held.
func (i *Import) credit() error {
	for {
		given := i.ring.given.Load()
		f := wire.Frame{Type: wire.Credit, Number: i.number, Count: given - i.credited}
		i.credited = given
		if _, err := i.link.importer.Receive(&f); err != nil {
			return err
		}
		if len(i.notifying) == 0 || i.ring.wish(given) {
			return nil
		}
	}
}

// end makes sure that nothing more is sent. link.mu is held.
func (i *Import) end(err error) {
	if i.err != nil {
		return
	}
	if i.bytes > 0 {
		i.link.past.Add(i.counts())
	}
	i.err = err
	i.over.Store(true)
	close(i.ended)
	select {
	case <-i.ready:
	default:
		close(i.ready)
	}
	for _, op := range i.notifying {
		op.fail(err)
	}
	i.notifying = nil
	if i.ring != nil {
		i.ring.unmap()
		unix.Close(i.bell)
		i.ring = nil
	}
}

// unmap waits for copies into shared memory, and gives mapped areas memory of their own. If that fails, the exporter
// must not hear that the import is over: see outbound.strand.
func (i *Import) unmap() (err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.mappings {
		if failed := m.end(); failed != nil {
			err = fmt.Errorf("the area %v stays mapped: %w", m.area, failed)
			i.link.node.warn("%v", err)
		}
	}
	i.mappings = nil
	if i.memory != nil {
		_ = i.memory.unmap() // it fails for nothing that we mapped
		i.memory = nil
	}
	i.link.node.freeProxy(i)
	return err
}

// release ends an import that sends nothing more.
func (i *Import) release() {
	o := i.link
	if err := i.unmap(); err != nil {
		o.strand(err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i.releasing = true
	if i.shorts > 0 {
		o.rdma.stir()
	}
	i.releaseIdle()
}

// releaseIdle gives an import back that sends nothing more, once no write of it is on its way: the exporter
// would refuse it. link.mu is held.
func (i *Import) releaseIdle() {
	if i.releasing && i.writing == 0 {
		if s := i.link.rdma; s != nil && s == i.lessee {
			s.holder.Remove(i.number)
		}
		i.link.importer.Release(i.number)
		i.link.drop(i.number)
	}
}

// Unimport ends an import (§4.5): nothing can be sent through it any more, and its proxy addresses are free.
// Messages that have not been sent out fail with ErrUnimported.
func (i *Import) Unimport() {
	i.link.mu.Lock()
	i.end(ErrUnimported)
	i.link.mu.Unlock()
	i.release()
}

// Node returns the node whose import this is.
func (i *Import) Node() *Node { return i.link.node }

// Bytes returns the size of the export.
func (i *Import) Bytes() uint64 { return i.bytes }

// Shared tells whether the export is memory of this machine that both processes share.
func (i *Import) Shared() bool { return i.shared }

// Done is closed when nothing can be sent any more: Err says why.
func (i *Import) Done() <-chan struct{} { return i.ended }

// Err returns why nothing can be sent any more: ErrUnexported, ErrUnimported, ErrPeerGone or ErrClosed. It
// is nil before.
func (i *Import) Err() error {
	i.link.mu.Lock()
	defer i.link.mu.Unlock()
	return i.err
}
