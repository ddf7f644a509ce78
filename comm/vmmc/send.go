package vmmc

import (
	"context"
	"fmt"
)

// Send sends a message: the bytes of src, to the offset off of the export, in bytes (§4.2). It returns when
// all has been sent out and src may be changed; with shared memory, the message has arrived then. It does not
// wait for anybody to look at it. Messages through one Import arrive in the order of their Sends, each
// notification after its message. While a message arrives its bytes come in any order.
//
// With ErrBounds nothing was sent. After any other error, and after the end of ctx, some of it may have been,
// and a device may read src for a moment longer: what it reads belongs to the message.
// Without Notify, shared memory costs a copy, no system call and no allocation.
func (i *Import) Send(ctx context.Context, src []byte, off uint64, o SendOptions) error {
	o.Done, o.Progress = nil, nil
	if i.shared && !o.Notify && o.Registered == nil && !o.RDMA {
		return i.copy(src, off)
	}
	if len(src) > 0 && len(src) <= copyBytes && !o.Notify && o.Registered == nil && !o.NoRDMA && !o.RDMA {
		if err := i.bounds(src, off); err != nil {
			return err
		}
		if i.short(src, off) {
			return nil
		}
	}
	op, err := i.begin(src, off, o, true)
	if err != nil {
		return err
	}
	i.link.poll(op)
	select {
	case <-op.sent.c:
		return op.Err()
	case <-ctx.Done():
		i.link.mu.Lock()
		defer i.link.mu.Unlock()
		op.fail(ctx.Err())
		return op.err
	}
}

// SendAsync begins Send. src must not change until the Op is Sent. It fails at once with ErrBounds, with
// ErrTooManyOps, with ErrNoRDMA, or if the import has ended: then nothing has been sent.
func (i *Import) SendAsync(src []byte, off uint64, o SendOptions) (*Op, error) {
	return i.begin(src, off, o, false)
}

// begin begins a message. Whoever says that it is polled calls poll.
func (i *Import) begin(src []byte, off uint64, o SendOptions, polled bool) (*Op, error) {
	if err := i.bounds(src, off); err != nil {
		return nil, err
	}
	if i.shared && (o.Registered != nil || o.RDMA) {
		return nil, ErrNoRDMA
	}
	op := newOp(i, src, off, o)
	op.polled = polled
	l := i.link
	if i.shared {
		if o.Notify {
			l.mu.Lock()
			full := len(i.notifying) >= l.node.opt.MaxOps
			l.mu.Unlock()
			if full {
				return nil, ErrTooManyOps
			}
		}
		if err := i.copy(src, off); err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if o.Notify {
			l.notify(op) // what fails from now on fails the Op: the bytes are with the exporter
		} else {
			op.fail(nil) // reaches both states
		}
		return op, nil
	}
	if err := i.enqueue(op); err != nil {
		return nil, err
	}
	return op, nil
}

// tell notifies the exporter of bytes that are in shared memory already. If too many notifications wait before it, so
// does it.
func (i *Import) tell(ctx context.Context, off, bytes uint64, o SendOptions) (*Op, error) {
	op := newOp(i, nil, off, o)
	op.bytes = bytes
	for !i.tryTell(op) {
		select {
		case <-i.link.oldest():
		case <-i.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return op, nil
}

// tryTell is tell that does not wait. After the end of the import the op fails.
func (i *Import) tryTell(op *Op) bool {
	l := i.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(i.notifying) >= l.node.opt.MaxOps {
		return false
	}
	l.notify(op)
	return true
}

// maxUnacked is how many messages may be on their way to one exporter. The buffers of the kernel hold fewer: an
// exporter that acknowledges nothing takes no more memory than for these.
const maxUnacked = 1 << 18

// enqueue sends a message by RDMA, or gives it to the writer of the connection.
func (i *Import) enqueue(op *Op) error {
	l := i.link
	most := l.node.opt.MaxOps
	unregistered := l.prepare(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	switch {
	case i.err != nil:
		err = i.err
	case len(l.queue) >= most || op.notify && len(i.notifying) >= most || len(l.unacked) >= maxUnacked:
		err = ErrTooManyOps
	}
	if err != nil || !op.direct || op.lessee != l.rdma || !i.rdma() {
		l.node.fabric.release(&op.from)
		op.unlend()
		op.direct = false
		if err == nil && op.insists {
			if err = ErrNoRDMA; unregistered != nil {
				err = fmt.Errorf("%w: %w", ErrNoRDMA, unregistered)
			}
		}
	}
	if err != nil {
		return err
	}
	op.queued = true
	if op.progress != nil {
		op.progress.unacked++
	}
	l.queue = append(l.queue, op)
	i.sent(op.size())
	if op.direct {
		l.post()
	} else {
		l.stir()
	}
	return nil
}

func (i *Import) bounds(src []byte, off uint64) error {
	if n := uint64(len(src)); off > i.bytes || n > i.bytes-off {
		return fmt.Errorf("%w: %d bytes at %d of %d", ErrBounds, n, off, i.bytes)
	}
	return nil
}

// copy is a message to shared memory. The lock keeps the memory mapped. It also orders the stores of
// one message before those of the next, for processors that would not.
func (i *Import) copy(src []byte, off uint64) error {
	if err := i.bounds(src, off); err != nil {
		return err
	}
	i.mu.RLock()
	if i.over.Load() || i.memory == nil {
		i.mu.RUnlock()
		return i.Err()
	}
	copy(i.memory.bytes[off:], src)
	i.mu.RUnlock()
	i.sent(uint64(len(src)))
	return nil
}

// Fill has a function write a message straight into its place: n bytes at off of an export that is Shared, to which it
// gets a slice. It returns what the function returns, and fails with ErrNotShared for other exports. The memory stays
// mapped until the function has returned: the end of the import and of the node wait for it.
func (i *Import) Fill(off, n uint64, write func([]byte) (int, error)) (int, error) {
	if !i.shared {
		return 0, ErrNotShared
	}
	if off > i.bytes || n > i.bytes-off {
		return 0, fmt.Errorf("%w: %d bytes at %d of %d", ErrBounds, n, off, i.bytes)
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.over.Load() || i.memory == nil {
		return 0, i.Err()
	}
	done, err := write(i.memory.bytes[off:][:n:n])
	i.sent(uint64(max(done, 0)))
	return done, err
}
