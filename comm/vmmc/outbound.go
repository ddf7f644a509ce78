package vmmc

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
)

// outbound is the connection of this node to an exporter, with the imports from it.
type outbound struct {
	*stream
	node    *Node
	address string
	ours    bool // the exporter is a process of the same user on this machine

	// mu protects what follows. It is taken after Node.mu, and before stream.mu.
	mu        sync.Mutex
	importer  *protocol.Importer
	imports   map[uint64]*Import
	queue     []*Op         // whose bytes have not all been sent, in order
	sending   []*Op         // whose last bytes the writer has
	unacked   []*Op         // whose last frame has its place in the order, by that
	count     uint64        // of Data and Notify frames that have their place
	confirmed uint64        // how many of these have arrived
	lastData  uint64        // count at the last Data frame
	rdma      *rdmaSender   // nil: RDMA is down
	tried     chan struct{} // closed when RDMA has come up, or could not
	down      error         // why nothing can be imported any more
	past      broker.Sent   // through imports that have ended
	spare     *time.Timer   // calls closeSpare; nil: something is imported
	stranded  bool          // see strand
}

func newOutbound(n *Node, address string, s *stream) *outbound {
	s.keeps = true // until nothing is written into shared memory any more: see closedByPeer
	o := &outbound{stream: s, node: n, address: address, imports: map[uint64]*Import{}, tried: make(chan struct{})}
	o.importer = protocol.NewImporter(o.emit)
	return o
}

// one is what rings a bell: eventfd(2) adds it.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// emit queues a frame of the importer, or puts a notification into the ring of its import. One that is queued
// has its place in the order from now on. mu is held.
func (o *outbound) emit(f *wire.Frame) {
	if f.Type != wire.Notify {
		o.send(f, nil)
		return
	}
	i := o.imports[f.Number]
	if i.err != nil {
		return // a credit crossed its end
	}
	op := i.notifying[0]
	i.notifying = i.notifying[1:]
	if i.ring == nil {
		o.count++
		o.ordered(op)
		op.finish(&op.sent, nil)
		o.send(f, nil)
		return
	}
	if i.ring.put(entry{offset: f.Offset, bytes: f.Bytes, tag: uint64(f.Tag)}) {
		_, _ = unix.Write(i.bell, one) // it fails only if there are as many rings as it can count
	}
	op.fail(nil) // reaches both states: the exporter has it
}

// ordered completes an op when all frames so far have arrived. mu is held.
func (o *outbound) ordered(op *Op) {
	op.last = o.count
	o.unacked = append(o.unacked, op)
	if op.last <= o.confirmed { // it has no bytes: there will be no other Ack for it
		_ = o.acked(o.confirmed) // which was in order
	}
}

// serve reads what the exporter sends until the connection ends. It says nothing before the exporter said
// hello, and so accepted this node: an answer to what it refuses could overtake the reason. greeted is
// closed then.
func (o *outbound) serve(greeted chan struct{}) {
	var writer sync.WaitGroup
	o.read(func(*wire.Frame) error {
		writer.Go(func() { o.write(o) })
		if o.mayUseRDMA() {
			writer.Go(o.useRDMA)
		} else {
			close(o.tried)
		}
		close(greeted)
		return nil
	}, o.handle)
	writer.Wait()
	o.end(o.gone())
	if !o.keepStranded() {
		o.hangUp()
	}
	if c, ok := o.conn.(*unixConn); ok {
		c.close()
	}
}

// handle takes a frame of the exporter.
func (o *outbound) handle(f *wire.Frame) error {
	var fds []int
	if f.Shared {
		c, ok := o.conn.(*unixConn)
		if ok {
			fds = c.take(descriptors)
		}
		if fds == nil {
			return fmt.Errorf("%w: a shared export without its descriptors", protocol.ErrProtocol)
		}
		if !o.ours {
			closeAll(fds)
			return fmt.Errorf("%w: shared memory of another user", protocol.ErrProtocol)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch f.Type {
	case wire.Ack:
		return o.acked(f.Count)
	case wire.Endpoint, wire.Region, wire.NoLease, wire.Recall, wire.Down:
		return o.introduced(f)
	}
	event, err := o.importer.Receive(f)
	if event != protocol.Granted {
		closeAll(fds)
	}
	i := o.imports[f.Number]
	if f.Type == wire.Credit && err == nil && i != nil && i.ring != nil {
		return i.credit()
	}
	switch event {
	case protocol.Granted:
		if i.err != nil { // its release is on the way
			closeAll(fds)
			break
		}
		if err := i.granted(f, fds); err != nil {
			i.end(err)
			o.importer.Release(f.Number)
			o.drop(f.Number)
		}
	case protocol.Denied:
		i.end(fmt.Errorf("vmmc: export %d of %s: %w", i.export, o.address, protocol.Reason(f.Code)))
		o.drop(f.Number)
	case protocol.Revoked:
		i.end(ErrUnexported)
		// Not here: copies into shared memory may be under way, and the reader waits for nobody.
		o.node.tasks.Go(i.release)
	}
	return err
}

// acked completes the ops whose last frame has arrived. mu is held.
func (o *outbound) acked(count uint64) error {
	if count > o.count {
		return fmt.Errorf("%w: %d messages arrived of %d", protocol.ErrProtocol, count, o.count)
	}
	o.confirmed = count
	for len(o.unacked) > 0 && o.unacked[0].last <= count {
		o.unacked[0].finish(&o.unacked[0].sent, nil)
		o.unacked[0].finish(&o.unacked[0].acked, nil)
		o.unacked = o.unacked[1:]
	}
	o.post()
	return nil
}

// next gives the writer the next bytes of the oldest ops, as many as there is room for.
func (o *outbound) next(b []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.idle() {
		return b
	}
	for len(o.queue) > 0 {
		op := o.queue[0]
		i := op.to
		if op.direct { // post goes on from here
			break
		}
		if o.writing() { // that has to end first
			o.rdma.stir()
			break
		}
		if op.err != nil || i.err != nil && !op.told {
			op.fail(i.err)
			o.dequeue(op)
			continue
		}
		n := min(len(op.src), wire.MaxChunk)
		if len(b) > 0 && len(b)+wire.DataHeader+n > cap(b) {
			break
		}
		if n > 0 {
			b = wire.Append(b, &wire.Frame{Type: wire.Data, Number: i.number, Offset: op.at, Bytes: uint64(n)})
			b = append(b, op.src[:n]...)
			op.src, op.at = op.src[n:], op.at+uint64(n)
			o.count++
			o.lastData = o.count
		}
		if len(op.src) == 0 && len(op.more) > 0 {
			op.src, op.at, op.more = op.more[0].src, op.more[0].at, op.more[1:]
		}
		if len(op.src) > 0 {
			continue
		}
		op.src, op.more = nil, nil // they may be much, and an Ack may take long
		o.dequeue(op)
		o.sending = append(o.sending, op)
		if op.notify {
			break // the notification has its place before what follows: written takes care of it
		}
		o.ordered(op)
	}
	return b
}

// oldest is closed when the oldest message that waits has been sent out. Those that were given up are in the
// queue as long as the writer is busy, and tell nothing.
func (o *outbound) oldest() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.queue {
		if !op.sent.reached {
			return op.sent.c
		}
	}
	soon := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { close(soon) })
	return soon
}

// written hears that all that next returned has been sent out.
func (o *outbound) written() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.sending {
		if op.notify {
			o.notify(op)
			o.stir() // next stopped at this op. What follows it does not wait for its credit
		} else {
			op.finish(&op.sent, nil)
		}
	}
	o.sending = nil
	o.post()
}

// notify sends the notification of an op whose bytes are with the exporter, or on their way in order. mu is
// held.
func (o *outbound) notify(op *Op) {
	i := op.to
	if i.err != nil {
		op.fail(i.err)
		return
	}
	i.notifying = append(i.notifying, op)
	o.importer.Notify(i.number, op.offset, op.bytes, op.tag)
	if i.ring != nil && len(i.notifying) > 0 {
		if err := i.credit(); err != nil {
			o.fail(err)
		}
	}
}
