package vmmc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/internal/fault"
	"pinwheel/mem"
)

// Permissions say who may import an export (§3): those with one of the names, and also those who are one of
// the users. The zero value permits nobody.
type Permissions struct {
	// Peers are names: of certificates, or those that peers give themselves, if a token or the user of this
	// machine is all the identity that they have. Those of another user's processes begin with its number: 1000/NAME;
	// those of another node's processes end with its name: NAME@NODE. The empty name permits nobody.
	Peers []string
	// UIDs are users of this machine. They are known of peers at Unix sockets, of those that the broker
	// connects, and of those with the TokenFile.
	UIDs []uint32
	// MaxImporters is how many may import at a time. 0 stands for 256.
	MaxImporters int
	// MaxPerPeer is how many of these may be of one peer: of one name and user. 0 stands for all of them.
	MaxPerPeer int
}

func (p *Permissions) permits(who protocol.Identity) bool {
	return who.Name != "" && slices.Contains(p.Peers, who.Name) ||
		who.UID >= 0 && who.UID <= math.MaxUint32 && slices.Contains(p.UIDs, uint32(who.UID))
}

// ExportOptions say what becomes of the notifications of an export.
type ExportOptions struct {
	// Queue is how many notifications of each importer may wait, to be handled or for a Wait. Its sends with
	// more of them wait, and disturb no other export. 0 stands for 64.
	Queue int
	// Coalesce makes one of those of an importer with the same tag that wait.
	Coalesce bool
}

// Export is a receive buffer (§4.1). All methods are safe for concurrent use.
type Export struct {
	node   *Node
	id     uint32
	memory []byte
	block  *block        // that has the memory; nil: the memory is not of Alloc
	gone   chan struct{} // closed with the end of the export

	// Node.mu protects what follows.
	queue      protocol.Queue
	counts     broker.Received
	rings      []*ringReader // of importers that share the memory
	handler    func(Notification)
	handling   bool          // a goroutine calls handlers
	events     int           // eventfd of FD; 0: nobody asked for it
	changed    chan struct{} // closed when any of this changes, and made anew
	unreturned bool          // a peer that did not answer may share the memory still
	late       *time.Timer   // of Unexport; nil before
	ended      bool
	err        error // of the end
}

// Export makes memory a receive buffer that the permitted peers can import by the name id. Messages arrive
// in it at any time from now on, without a receive, until Unexport returns; the memory must stay mapped and
// writable for as long. Importers on this machine share memory of Alloc, and send to any other memory
// through a socket. It fails with ErrExported if the name is in use, and with ErrInUse if the memory is of
// an Alloc that is exported or mapped already.
func (n *Node) Export(id uint32, memory []byte, p Permissions, o ExportOptions) (*Export, error) {
	if len(memory) == 0 || o.Queue < 0 || p.MaxImporters < 0 || p.MaxPerPeer < 0 {
		return nil, fmt.Errorf("vmmc: export of %d bytes, with a queue of %d, for %d importers, %d of a peer",
			len(memory), o.Queue, p.MaxImporters, p.MaxPerPeer)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if len(n.exports) >= n.opt.MaxExports {
		return nil, fmt.Errorf("%w: %d", ErrTooManyExports, len(n.exports))
	}
	e := &Export{node: n, id: id, memory: memory, gone: make(chan struct{}), changed: make(chan struct{})}
	e.queue.Coalesce = o.Coalesce
	at := mem.RangeOf(memory)
	e.block = n.blockOf(at)
	p.Peers, p.UIDs = slices.Clone(p.Peers), slices.Clone(p.UIDs)
	t := protocol.Terms{
		Bytes: uint64(len(memory)), Permits: p.permits,
		MaxImporters: cmp.Or(p.MaxImporters, 256), MaxPerPeer: p.MaxPerPeer, Credits: uint64(cmp.Or(o.Queue, 64)),
	}
	if o.Coalesce {
		t.Credits++ // to add to those that wait
	}
	t.Shared = func(l protocol.Link) bool {
		in := n.inbound[l]
		if e.block == nil || !in.local {
			return false
		}
		var err error
		in.sharing, err = in.share(e, t.Credits)
		if err != nil { // without descriptors or memory
			_ = n.spawn(func() { n.warn("export %d: messages of %q go through the socket: %v", id, in.who.Name, err) })
		}
		return err == nil
	}
	if b := e.block; b != nil {
		if b.export != nil || len(b.mappings) > 0 {
			return nil, fmt.Errorf("%w: %v", ErrInUse, at)
		}
		t.Offset = uint64(at.Start - b.area.Start)
	}
	if err := n.exporter.Export(id, t); err != nil {
		return nil, fmt.Errorf("vmmc: %w", err)
	}
	n.exports[id] = e
	if e.block != nil {
		e.block.export = e
	}
	return e, nil
}

// Unexport ends an export (§4.5). When it returns nil, all imports of it are gone, messages sent through
// them have been delivered, and nothing arrives any more. An importer that does not answer within
// Options.RevokeTimeout loses its connection. If such a one shares memory on this machine, the export's
// Alloc gets other memory with the same content: until Unexport returns, the program should not write
// there. If ctx ends first, Unexport goes on by itself.
func (e *Export) Unexport(ctx context.Context) error {
	gone, err := e.UnexportAsync()
	if err != nil {
		return err
	}
	select {
	case <-gone: // whatever ctx says
		return e.err
	default:
	}
	select {
	case <-gone:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// UnexportAsync begins Unexport, or joins one that is under way. gone is closed at its end.
func (e *Export) UnexportAsync() (gone <-chan struct{}, err error) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-e.gone:
		return nil, fmt.Errorf("vmmc: %w: %d", ErrNotExported, e.id)
	default:
	}
	switch {
	case n.closed:
		return nil, fmt.Errorf("vmmc: %w: %d", ErrNotExported, e.id)
	case e.late != nil || e.ended:
		return e.gone, nil
	}
	if err := n.exporter.Unexport(e.id); err != nil {
		return nil, fmt.Errorf("vmmc: %w", err)
	}
	if !e.ended {
		e.late = time.AfterFunc(n.opt.RevokeTimeout, e.revoke)
	}
	return e.gone, nil
}

// renew gives the export's Alloc other memory, which takes long if that is much: nobody else has it before finish.
func (e *Export) renew() {
	err := fault.Contain(e.block.renew)
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.finish(err)
}

// finish gives the memory back, and wakes those who wait in Unexport. n.mu is held.
func (e *Export) finish(err error) {
	if e.err = err; e.block != nil && err == nil {
		e.block.export = nil
	}
	close(e.gone)
}

// errUnanswered ends connections of importers that do not answer.
var errUnanswered = errors.New("no answer to a revoked import")

// revoke ends the connections of the importers that are left.
func (e *Export) revoke() {
	n := e.node
	n.mu.Lock()
	var late []*inbound
	if !e.ended {
		for _, l := range n.exporter.Holders(e.id) {
			late = append(late, n.inbound[l])
		}
	}
	n.mu.Unlock()
	for _, in := range late {
		n.warn("export %d: %q did not give it back within %v: its connection ends",
			e.id, in.who.Name, n.opt.RevokeTimeout)
		in.fail(errUnanswered)
	}
}
