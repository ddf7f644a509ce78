package vmmc

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/internal/fault"
)

// Notification tells of a message that has arrived, because its sender wanted that (§4.4).
type Notification struct {
	Peer   string // name of the importer
	Tag    uint16 // as in SendOptions
	Offset uint64 // of the message, in the export
	Bytes  uint64 // of the message
	Count  int    // how many this one stands for; more than one only with ExportOptions.Coalesce
}

// notified takes a notification. n.mu is held.
func (e *Export) notified(n protocol.Notification) {
	if !e.queue.Put(n) {
		e.node.exporter.Consumed(n.From)
		return
	}
	e.signal()
	e.stir()
}

// drain takes the notifications that are in shared memory already: what changes now does not concern them.
// n.mu is held.
func (e *Export) drain() {
	for _, r := range e.rings {
		r.drain()
	}
}

// FD returns an eventfd(2) for loops that poll: it becomes readable with each notification that stays in the
// queue, and at the end of the export. Whoever finds it readable reads it, and then calls Wait with a context
// that has ended, until that returns its error. From the first call on, notifications are wanted as by
// somebody in Wait. The descriptor does not block, and belongs to the caller, who closes it.
func (e *Export) FD() (int, error) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || e.ended {
		return -1, fmt.Errorf("%w: %d", ErrUnexported, e.id)
	}
	if e.events == 0 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return -1, os.NewSyscallError("eventfd", err)
		}
		e.events = fd
		e.drain()
		e.free(e.queue.Wait(1))
		if e.queue.Len() > 0 {
			e.signal()
		}
	}
	fd, err := unix.FcntlInt(uintptr(e.events), unix.F_DUPFD_CLOEXEC, 0)
	return fd, os.NewSyscallError("dup", err)
}

// signal makes what FD returned readable. n.mu is held.
func (e *Export) signal() {
	if e.events != 0 {
		_, _ = unix.Write(e.events, one) // it fails only if it is readable since 2^64-2 times
	}
}

// stir wakes whoever waits for a change. n.mu is held.
func (e *Export) stir() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// Handle calls f for each notification, one after the other, in a goroutine of its own. Without a handler,
// notifications are ignored, unless they are blocked or somebody is in Wait. nil removes it. A
// panic of f ends this call of it alone, and Options.Warn says so.
func (e *Export) Handle(f func(Notification)) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	e.drain()
	e.handler = f
	e.settle(e.queue.Handle(f != nil))
	if f != nil && !e.handling && !e.ended {
		e.handling = n.spawn(e.handle) == nil
	}
}

// free gives back the credits of notifications that nobody wants any more. n.mu is held.
func (e *Export) free(dropped []protocol.Notification) {
	for _, n := range dropped {
		e.node.exporter.Consumed(n.From)
	}
}

// settle is free after a change for the handler. n.mu is held.
func (e *Export) settle(dropped []protocol.Notification) {
	e.free(dropped)
	e.stir()
}

// Block keeps notifications in the queue until Unblock, or for Wait.
func (e *Export) Block() { e.setBlocked(true) }

// Unblock lets the handler have notifications, first those that came meanwhile.
func (e *Export) Unblock() { e.setBlocked(false) }

func (e *Export) setBlocked(yes bool) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.drain()
	e.settle(e.queue.Block(yes))
}

// Discard drops notifications, those in the queue first, or accepts them again.
func (e *Export) Discard(yes bool) {
	e.node.mu.Lock()
	defer e.node.mu.Unlock()
	e.drain()
	e.settle(e.queue.Discard(yes))
}

// Wait returns the next notification, also while they are blocked: Block, then Wait misses none. After the
// end of the export it returns those that are left, then ErrUnexported.
func (e *Export) Wait(ctx context.Context) (Notification, error) {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	e.drain()
	e.free(e.queue.Wait(1))
	defer func() { e.free(e.queue.Wait(-1)) }()
	for {
		if q, ok := e.queue.Take(); ok {
			n.exporter.Consumed(q.From)
			return public(q), nil
		}
		switch {
		case n.closed:
			return Notification{}, ErrClosed
		case e.ended:
			return Notification{}, fmt.Errorf("%w: %d", ErrUnexported, e.id)
		}
		changed := e.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		n.mu.Lock()
		if ctx.Err() != nil && e.queue.Len() == 0 {
			return Notification{}, ctx.Err()
		}
	}
}

// handle calls the handler until the export has ended.
func (e *Export) handle() {
	n := e.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for !n.closed {
		if !e.queue.Deliverable() {
			if e.ended || e.handler == nil {
				break
			}
			changed := e.changed
			n.mu.Unlock()
			<-changed
			n.mu.Lock()
			continue
		}
		q, _ := e.queue.Take()
		f := e.handler
		n.mu.Unlock()
		err := fault.Contain(func() error { f(public(q)); return nil })
		if err != nil {
			n.warn("the handler of export %d: %v", e.id, err)
		}
		n.mu.Lock()
		n.exporter.Consumed(q.From)
	}
	e.handling = false
}

func public(n protocol.Notification) Notification {
	return Notification{Peer: n.Peer, Tag: n.Tag, Offset: n.Offset, Bytes: n.Bytes, Count: n.Count}
}
