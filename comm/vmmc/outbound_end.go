package vmmc

import (
	"errors"
	"slices"
	"time"

	"pinwheel/comm/vmmc/broker"
)

// errSpare ends a connection through which nothing is imported.
var errSpare = errors.New("vmmc: nothing is imported through the connection")

// drop forgets an import that was released or refused. After the last one the connection is kept for a while: it is
// one of those that the exporter accepts, and that it pings. mu is held.
func (o *outbound) drop(number uint64) {
	delete(o.imports, number)
	o.spareSoon()
}

// spareSoon gives a connection through which nothing is imported some time. mu is held.
func (o *outbound) spareSoon() {
	if len(o.imports) == 0 && o.down == nil && o.spare == nil {
		o.spare = time.AfterFunc(o.silence, o.closeSpare)
	}
}

// needed keeps the connection. mu is held.
func (o *outbound) needed() {
	if o.spare != nil {
		o.spare.Stop()
		o.spare = nil
	}
}

// closeSpare closes the connection if nothing is imported through it, nor on its way.
func (o *outbound) closeSpare() {
	o.node.mu.Lock()
	defer o.node.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.down != nil || len(o.imports) > 0:
		return
	case len(o.queue)+len(o.sending)+len(o.unacked) > 0:
		o.spare = time.AfterFunc(o.silence, o.closeSpare)
		return
	}
	o.down = errSpare
	o.leave()
	o.bye()
}

// leave makes sure that imports don't find the connection any more. Node.mu and mu are held.
func (o *outbound) leave() {
	n := o.node
	if d := n.outbound[o.address]; d != nil && d.out == o {
		delete(n.outbound, o.address)
	}
	n.total.Sent.Add(o.past) // at the moment at which it leaves n.outbound: Stats never goes back
	o.past = broker.Sent{}
}

// end ends all imports and ops.
func (o *outbound) end(err error) {
	n := o.node
	n.mu.Lock()
	o.mu.Lock()
	if !errors.Is(o.down, errSpare) { // who finds that asks again
		o.down = err
	}
	o.needed()
	for _, i := range o.imports {
		i.end(err)
	}
	for _, op := range slices.Concat(o.queue, o.sending, o.unacked) {
		op.fail(err)
	}
	o.queue, o.sending, o.unacked = nil, nil, nil
	imports := o.imports
	o.imports = nil
	o.leave()
	o.mu.Unlock()
	n.mu.Unlock()
	for _, i := range imports {
		if err := i.unmap(); err != nil {
			o.strand(err)
		}
	}
}

// strand ends the connection without a word, after an area could not get memory of its own again: stores into it land
// in the memory of the exporter still, which must not take the end of the connection for theirs. It hears nothing for
// its heartbeat, or for the time that Unexport waits. Then it gives its export other memory.
func (o *outbound) strand(err error) {
	o.mu.Lock()
	o.stranded = true
	o.mu.Unlock()
	o.fail(err)
}

// keepStranded keeps the connection open, if it must be, until the memory of this node is gone.
func (o *outbound) keepStranded() bool {
	n := o.node
	n.mu.Lock()
	defer n.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stranded {
		n.stranded = append(n.stranded, o.conn)
	}
	return o.stranded
}

// close ends what uses the memory of the exporter, and then the connection, in this order: see closedByPeer.
func (o *outbound) close() {
	o.mu.Lock()
	o.down = ErrClosed
	var imports []*Import
	for _, i := range o.imports {
		i.end(ErrClosed)
		imports = append(imports, i)
	}
	o.mu.Unlock()
	for _, i := range imports {
		if err := i.unmap(); err != nil {
			o.strand(ErrClosed)
		}
	}
	o.bye() // nothing for one that is stranded
}
