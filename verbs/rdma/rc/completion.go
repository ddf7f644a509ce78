//go:build linux && cgo

package rc

import (
	"context"
	"errors"
	"os"
	"time"

	"pinwheel/verbs/rdma/internal/ibv"
)

// Poll moves completions to dst and returns how many there were, without waiting.
func (c *Conn) Poll(dst []Completion) (int, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed {
		return 0, ErrClosed
	}
	return c.take(dst)
}

// take polls. The caller holds life.
func (c *Conn) take(dst []Completion) (int, error) {
	c.poll.Lock()
	defer c.poll.Unlock()
	var batch [32]ibv.WC
	n, err := c.cq.Poll(batch[:min(len(dst), len(batch))])
	if err != nil {
		return 0, os.NewSyscallError("ibv_poll_cq", err)
	}
	for i, w := range batch[:n] {
		dst[i] = Completion{ID: w.ID, Status: Status(w.Status), Bytes: w.Bytes, Vendor: w.VendorErr}
	}
	c.pending.Add(-int64(n))
	return n, nil
}

// Wait moves at least one completion to dst, sleeping until there is one. It
// fails with the cause of ctx when that ends, with ErrClosed after Close, and
// with ErrPeerGone when the peer is gone and nothing is outstanding. After
// Interrupt it returns none. Several callers wait one after the other.
func (c *Conn) Wait(ctx context.Context, dst []Completion) (int, error) {
	if n, err := c.Poll(dst); n > 0 || err != nil || len(dst) == 0 {
		return n, err
	}
	c.waiting.Lock()
	defer c.waiting.Unlock()
	stop := context.AfterFunc(ctx, c.wake)
	defer stop()
	for {
		if n, err := c.armedPoll(dst); n > 0 || err != nil {
			return n, err
		}
		// The deadline is how others interrupt the sleep: cleared before their
		// conditions are looked at, so that none is missed.
		if err := c.events.SetReadDeadline(time.Time{}); err != nil {
			return 0, ErrClosed
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if c.interrupted.Swap(false) {
			return 0, nil
		}
		select {
		case <-c.gone:
			if c.closing.Load() {
				return 0, ErrClosed
			}
			if c.pending.Load() == 0 {
				return 0, ErrPeerGone
			}
		default:
		}
		if err := c.sleep(); err != nil {
			return 0, err
		}
	}
}

// Interrupt has the Wait that sleeps, or else the next one that would, return without a completion.
func (c *Conn) Interrupt() {
	c.interrupted.Store(true)
	c.wake()
}

// armedPoll asks for an event and polls after that: a completion either is
// seen here or gives an event.
func (c *Conn) armedPoll(dst []Completion) (int, error) {
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closed {
		return 0, ErrClosed
	}
	if err := c.cq.Arm(); err != nil {
		return 0, os.NewSyscallError("ibv_req_notify_cq", err)
	}
	return c.take(dst)
}

// sleep waits for an event, in the runtime's poller, or until woken.
func (c *Conn) sleep() error {
	raw, err := c.events.SyscallConn()
	if err != nil {
		return ErrClosed
	}
	err = raw.Read(func(uintptr) bool {
		return c.ch.NextEvent() == nil // EAGAIN: not yet
	})
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrClosed
	}
	return nil
}
