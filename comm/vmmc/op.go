package vmmc

import (
	"context"

	"pinwheel"
)

// SendOptions are those of a message.
type SendOptions struct {
	// Notify tells the exporter of the message after it has arrived (§4.4).
	Notify bool
	Tag    uint16 // of the notification
	// Registered, if not nil, is a use of all of src, by a Manager with the provider of Node.Provider. The message goes by
	// RDMA from there, or fails with ErrNoRDMA: no processor of this machine reads src, which may be a mapping of a file
	// that somebody truncates. The use must last until the Op is Acked.
	Registered *pinwheel.Use
	// NoRDMA sends the message through the connection, also while RDMA is up, so that nothing is registered for it.
	NoRDMA bool
	// RDMA has the message fail with ErrNoRDMA where it would go through the connection: nothing of it leaves without
	// RDMA. It goes with no export that is Shared.
	RDMA bool
	// Progress, if not nil, is one of the same import. Whoever has it takes the completions of SendAsync.
	Progress *Progress
	// Done, if not nil, is called once, when the Op of SendAsync is Acked, with Op.Err: no goroutine has to wait for that.
	// That may be before SendAsync has returned, but never if it fails. It must not block, nor call this package.
	// Send leaves it alone.
	Done func(error)
}

// Op is a message that SendAsync sends (§4.2). Its methods are safe for concurrent use.
type Op struct {
	to            *Import
	notify        bool
	tag           uint16
	registered    *pinwheel.Use // by the caller; nil: as the node sees fit
	noRDMA        bool
	insists       bool // it goes by RDMA, or fails
	progress      *Progress
	done          func(error)
	offset, bytes uint64

	// outbound.mu protects what follows, but the channels.
	src         []byte // that has not been sent
	at          uint64 // where it goes
	more        []piece
	update      bool // of automatic update
	direct      bool // it goes by RDMA; else through the connection
	queued      bool // it is in the queue of the connection
	told        bool // Send has returned: it is sent also after the end of its import
	polled      bool // Send looks for its completions; it is set before the op is known
	begun       bool // a write of it was posted, and not given up
	startNs     int64
	lessee      *rdmaSender // that has a lease for it
	rest        []piece     // of RDMA: that has not been posted
	low, high   uint64      // of RDMA: all its bytes go to places from low on, before high
	writes      int         // posted, and not completed
	last        uint64      // place of the last frame in the order of the connection
	sent, acked state
	err         error

	from source // of RDMA
}

// lookedFor tells whether whoever sends it looks for its completions. outbound.mu is held.
func (op *Op) lookedFor() bool { return op.polled || op.progress != nil && !op.progress.left }

// piece is a part of a message of automatic update.
type piece struct {
	src []byte
	at  uint64 // where it goes
}

// state is one that an Op reaches once.
type state struct {
	c       chan struct{}
	reached bool
}

func newOp(to *Import, src []byte, off uint64, o SendOptions) *Op {
	return &Op{
		to: to, notify: o.Notify, tag: o.Tag, registered: o.Registered, noRDMA: o.NoRDMA,
		insists: o.RDMA || o.Registered != nil, progress: o.Progress, done: o.Done,
		offset: off, bytes: uint64(len(src)), src: src, at: off,
		sent: state{c: make(chan struct{})}, acked: state{c: make(chan struct{})},
	}
}

// finish reaches a state. The first error stays.
func (op *Op) finish(s *state, err error) {
	if s.reached {
		return
	}
	if op.err == nil && err != nil {
		op.err = err
		op.to.failed()
	}
	s.reached = true
	close(s.c)
	if s != &op.acked {
		return
	}
	if op.done != nil {
		op.done(op.err)
	}
	if op.progress != nil {
		op.progress.unacked--
		op.progress.wake()
	}
}

func (op *Op) fail(err error) {
	op.finish(&op.sent, err)
	op.finish(&op.acked, err)
}

// Sent is closed when the message has been sent out, its notification included, or has failed. From then on
// its source may be changed.
func (op *Op) Sent() <-chan struct{} { return op.sent.c }

// Acked is closed when the message, with its notification, has arrived in the memory of the exporter, or has
// failed. It says nothing about who has looked at it.
func (op *Op) Acked() <-chan struct{} { return op.acked.c }

// Err returns why the message failed: some of it may have arrived. It is nil before the end.
func (op *Op) Err() error {
	op.to.link.mu.Lock()
	defer op.to.link.mu.Unlock()
	return op.err
}

// Wait returns when the message has arrived, or has failed. If ctx ends first the message goes on.
func (op *Op) Wait(ctx context.Context) error {
	select {
	case <-op.acked.c:
		return op.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// out returns when the message has been sent out, or has failed. If ctx ends first the message goes on.
func (op *Op) out(ctx context.Context) error {
	select {
	case <-op.sent.c:
		return op.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Cancel gives a message up: Sent and Acked are closed, with err unless it has arrived, and its source may be changed.
// Some of it may have been sent. A message of which RDMA writes were posted goes on, as the device reads its source: it
// ends when these have completed.
func (op *Op) Cancel(err error) {
	op.to.link.mu.Lock()
	defer op.to.link.mu.Unlock()
	if !op.direct || !op.begun {
		op.fail(err)
	}
}

// size returns the bytes of a message that has not been sent.
func (op *Op) size() uint64 {
	n := len(op.src)
	for _, p := range op.more {
		n += len(p.src)
	}
	return uint64(n)
}
