package vmmc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// errQueuePair ends the connections of importers whose messages the device refused.
var errQueuePair = errors.New("its queue pair failed, as it does after a message to where it may not write")

// rdmaReceiver lets one importer write into the exports that it was granted: by a queue pair in a protection
// domain of its own, in which these are registered to the byte.
type rdmaReceiver struct {
	in     *inbound
	number uint64 // of the importer's attempt
	device device
	domain domain
	wake   chan struct{} // there is something to register; capacity 1
	ctx    context.Context
	stop   context.CancelFunc // ends ctx
	tasks  sync.WaitGroup

	leased map[uint64]bool // imports to be registered; Node.mu protects it

	// mu is held while memory is deregistered. It is taken before Node.mu.
	mu         sync.Mutex
	regions    map[uint64]verbs.Region // by import
	underWay   uint64                  // import that is being registered; 0: none
	registered *sync.Cond              // none is
	lacking    bool                    // an export could not be registered, and a line said so
}

// introduce answers an importer that wants to use RDMA, or that has given it up. Only the reader calls it.
func (in *inbound) introduce(f *wire.Frame) error {
	if f.Type == wire.Down {
		if r := in.rdma; r != nil && r.number == f.Number {
			in.closeRDMA()
		}
		in.send(&wire.Frame{Type: wire.Down, Number: f.Number, Code: wire.RDMAFailed}, nil)
		return nil
	}
	if in.rdma != nil {
		return fmt.Errorf("%w: a second endpoint", protocol.ErrProtocol)
	}
	n := in.node
	code := wire.NoRDMA
	if dev, err := n.fabric.open(n); err == nil {
		code = wire.RDMAFailed
		if err = in.receive(dev, f); err == nil {
			return nil
		}
		if !in.unusable {
			n.warnOfPeer("messages of %q come through its connection, as RDMA is down: %v", in.who.Name, err)
		}
		in.unusable = true
	}
	in.send(&wire.Frame{Type: wire.Down, Number: f.Number, Code: code}, nil)
	return nil
}

// receive connects a queue pair with the importer's.
func (in *inbound) receive(dev device, f *wire.Frame) error {
	d, err := dev.Receiver(localAddr(in.conn))
	if err != nil {
		return err
	}
	if err := d.Ready([]byte(f.Name)); err != nil {
		return errors.Join(err, d.Close())
	}
	r := &rdmaReceiver{
		in: in, number: f.Number, device: dev, domain: d, wake: make(chan struct{}, 1),
		regions: map[uint64]verbs.Region{}, leased: map[uint64]bool{},
	}
	r.registered = sync.NewCond(&r.mu)
	r.ctx, r.stop = context.WithCancel(context.Background())
	in.send(&wire.Frame{Type: wire.Endpoint, Number: f.Number, Name: string(d.Endpoint())}, nil)
	in.node.mu.Lock()
	in.rdma = r
	in.node.mu.Unlock()
	r.tasks.Go(r.watch)
	r.tasks.Go(r.register)
	r.stir()
	return nil
}

func (r *rdmaReceiver) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// watch ends the connection of an importer that writes where it may not: its queue pair fails then. The
// importer may have heard of that before, and be gone. A device that fails ends its queue pairs, too: the importer will
// notice.
func (r *rdmaReceiver) watch() {
	var c [1]completion
	if n, _ := r.domain.Wait(r.ctx, c[:]); n == 0 {
		return
	}
	n := r.in.node
	if err := r.device.Check(); err != nil {
		n.warn("messages of %q come through its connection, as RDMA is down: %v", r.in.who.Name, err)
		return
	}
	n.mu.Lock()
	n.total.Violations++
	n.mu.Unlock()
	n.warnOfPeer("the connection of %q was ended: %v", r.in.who.Name, errQueuePair)
	r.in.fail(errQueuePair)
}

// register registers what is granted to the importer, and tells it.
func (r *rdmaReceiver) register() {
	for {
		select {
		case <-r.wake:
		case <-r.ctx.Done():
			return
		}
		for r.ctx.Err() == nil && r.registerOne() {
		}
	}
}

// registerOne registers one export, if there is one to be.
func (r *rdmaReceiver) registerOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	number, memory := r.next()
	if memory == nil {
		return false
	}
	at := mem.RangeOf(memory)
	r.underWay = number
	r.mu.Unlock()
	g, err := r.domain.Register(at) // the memory stays mapped: its Unexport waits for ungrant
	r.mu.Lock()
	r.underWay = 0
	r.registered.Broadcast()
	if err != nil {
		r.unregistered(number, at, err)
		return true
	}
	r.regions[number] = g
	r.in.send(&wire.Frame{Type: wire.Region, Number: number, Offset: uint64(at.Start), Key: g.RKey}, nil)
	return true
}

// next chooses the export to register. mu is held.
func (r *rdmaReceiver) next() (number uint64, memory []byte) {
	n := r.in.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for k := range r.leased {
		delete(r.leased, k)
		id, granted := r.in.granted[k]
		if e := n.exports[id]; granted && e != nil && r.regions[k].Range.Empty() {
			return k, e.memory
		}
	}
	return 0, nil
}

// unregistered takes a lease back that the importer has not got. mu is held.
func (r *rdmaReceiver) unregistered(number uint64, at mem.Range, err error) {
	n := r.in.node
	if !r.lacking {
		n.warnOfPeer("messages of %q to %v come through its connection: %v", r.in.who.Name, at, err)
	}
	r.lacking = true
	n.mu.Lock()
	n.lessor.Drop(protocol.Grant{Link: r.in.link, Number: number})
	n.mu.Unlock()
	r.in.send(&wire.Frame{Type: wire.NoLease, Number: number}, nil)
}

// ungrant deregisters an export that the importer gives back: nothing lands there any more. Only the reader
// calls it.
func (in *inbound) ungrant(number uint64) error {
	r := in.rdma
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	in.node.mu.Lock()
	delete(in.granted, number)
	in.node.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.deregister(number)
}

// deregister ends the lease of an import, if it has one. mu is held.
func (r *rdmaReceiver) deregister(number uint64) error {
	for r.underWay != 0 && r.underWay == number {
		r.registered.Wait()
	}
	g, registered := r.regions[number]
	delete(r.regions, number)
	var err error
	if registered {
		err = r.domain.Deregister(g)
	}
	n := r.in.node
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(r.leased, number)
	n.lessor.Drop(protocol.Grant{Link: r.in.link, Number: number})
	return err
}

// lease takes a frame about the lease of an import. Only the reader calls it.
func (in *inbound) lease(f *wire.Frame) error {
	r := in.rdma
	if r == nil {
		return nil // the importer hears that RDMA is down
	}
	if f.Type == wire.Yield {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.deregister(f.Number)
	}
	n := in.node
	n.mu.Lock()
	defer n.mu.Unlock()
	id, granted := in.granted[f.Number]
	e := n.exports[id]
	if !granted || e == nil {
		return nil // its Release is on the way, or it shares memory
	}
	bytes := uint64(len(e.memory))
	if n.lessor.Check(bytes) != nil {
		return nil // messages go through the connection for good
	}
	return n.lessor.Renew(protocol.Grant{Link: in.link, Number: f.Number}, bytes)
}

// lessorDriver is a Node as its Lessor sees it. Node.mu is held in its methods.
type lessorDriver Node

// Grant has an export registered for an importer.
func (d *lessorDriver) Grant(g protocol.Grant) {
	if in := d.inbound[g.Link]; in != nil && in.rdma != nil {
		in.rdma.leased[g.Number] = true
		in.rdma.stir()
	}
}

// Recall asks an importer to yield.
func (d *lessorDriver) Recall(g protocol.Grant) {
	if in := d.inbound[g.Link]; in != nil {
		in.send(&wire.Frame{Type: wire.Recall, Number: g.Number}, nil)
	}
}

// closeRDMA ends RDMA with the importer: nothing of it lands any more.
func (in *inbound) closeRDMA() {
	r := in.rdma
	if r == nil {
		return
	}
	in.node.mu.Lock()
	in.rdma = nil
	in.node.mu.Unlock()
	r.stop()
	r.tasks.Wait()
	if err := r.domain.Close(); err != nil {
		in.node.warnOfPeer("RDMA of %q: %v", in.who.Name, err)
	}
	in.node.mu.Lock()
	defer in.node.mu.Unlock()
	in.node.lessor.LinkDown(in.link)
}
