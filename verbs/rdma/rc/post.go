//go:build linux && cgo

package rc

import (
	"errors"
	"fmt"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs/rdma/internal/ibv"
)

// Local is a piece of registered memory of this process.
type Local struct {
	Range mem.Range
	LKey  uint32
	// Inline lets the processor copy the bytes of a Write or a Send when it is posted, if
	// they are no more than MaxInline: then it needs no LKey, and they may change at once.
	Inline bool
}

// Remote is registered memory of the peer, as the peer told: by Send, or in any other way.
type Remote struct {
	Addr uint64
	RKey uint32
}

// Write posts an RDMA write of l to r. The peer's processor takes no part and
// learns nothing of it. The region of l needs no access, that of r
// AccessRemoteWrite.
func (c *Conn) Write(id uint64, l Local, r Remote) error { return c.post(id, ibv.OpWrite, l, r) }

// Read posts an RDMA read of r into l. The region of l needs AccessLocalWrite,
// that of r AccessRemoteRead.
func (c *Conn) Read(id uint64, l Local, r Remote) error { return c.post(id, ibv.OpRead, l, r) }

// Send posts a send of l into the peer's oldest receive, which must be as long at least.
func (c *Conn) Send(id uint64, l Local) error { return c.post(id, ibv.OpSend, l, Remote{}) }

// Receive posts a buffer for a Send of the peer. Its region needs AccessLocalWrite.
func (c *Conn) Receive(id uint64, l Local) error {
	return c.submit("receive", l, func(s ibv.SGE) error { return c.qp.PostRecv(id, s) })
}

func (c *Conn) post(id uint64, op int, l Local, r Remote) error {
	inline := l.Inline && op != ibv.OpRead && l.Range.Len() > 0 && l.Range.Len() <= c.inline
	return c.submit("request", l, func(s ibv.SGE) error { return c.qp.PostSend(id, op, inline, s, r.Addr, r.RKey) })
}

// MaxInline returns how many bytes of a request can be Inline. 0 if Options asked for
// none, or the device can't.
func (c *Conn) MaxInline() uint64 { return c.inline }

// MaxMessage returns the most bytes of one request.
func (c *Conn) MaxMessage() uint64 { return uint64(c.port.MaxMessage) }

func (c *Conn) submit(what string, l Local, f func(ibv.SGE) error) error {
	if l.Range.Len() > c.MaxMessage() || l.Range.End < l.Range.Start {
		return fmt.Errorf("rc: %s of %v: a message has at most %s", what, l.Range, mem.FormatBytes(c.MaxMessage()))
	}
	c.life.RLock()
	defer c.life.RUnlock()
	if c.closing.Load() {
		return ErrClosed
	}
	c.pending.Add(1)
	err := f(ibv.SGE{Addr: uint64(l.Range.Start), Length: uint32(l.Range.Len()), LKey: l.LKey})
	if err == nil {
		return nil
	}
	c.pending.Add(-1)
	if errors.Is(err, syscall.ENOMEM) {
		return ErrFull
	}
	return fmt.Errorf("rc: posting a %s of %v: %w", what, l.Range, err)
}
