//go:build linux && cgo

package ibv

// #include "ibv.h"
import "C"

import (
	"os"

	"golang.org/x/sys/unix"
)

// CompChannel delivers completion events of completion queues.
type CompChannel struct{ c *C.struct_v_comp_channel }

// CreateCompChannel makes a completion channel.
func (c *Context) CreateCompChannel() (*CompChannel, error) {
	ch, err := C.v_create_comp_channel(c.c)
	if ch == nil {
		return nil, errno(err)
	}
	return &CompChannel{ch}, nil
}

// File returns a file that is readable when NextEvent would not block, for the runtime's poller, so that waiting
// costs no thread. It is the caller's to close, and non-blocking as NextEvent is from then on.
func (ch *CompChannel) File() (*os.File, error) {
	fd := int(ch.c.fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), "ibv-completion-events"), nil
}

// NextEvent reads and acknowledges a completion event; EAGAIN if there is none.
func (ch *CompChannel) NextEvent() error {
	if r, err := C.v_get_cq_event(ch.c); r != 0 {
		return errno(err)
	}
	return nil
}

// Destroy removes the channel; EBUSY while a completion queue uses it.
func (ch *CompChannel) Destroy() error {
	if r, err := C.v_destroy_comp_channel(ch.c); r != 0 {
		return errno(err)
	}
	return nil
}

// WC is a work completion (struct ibv_wc).
type WC struct {
	ID        uint64
	Status    int    // enum ibv_wc_status; with any but 0 only ID and VendorErr are valid
	Bytes     uint32 // of a receive
	VendorErr uint32
}

// pollBatch is how many completions one call of Poll takes at most.
const pollBatch = 32

// CQ is a completion queue.
type CQ struct {
	c     *C.struct_v_cq
	batch [pollBatch]C.struct_v_wc
}

// CreateCQ makes a completion queue of at least so many entries.
func (c *Context) CreateCQ(entries int, ch *CompChannel) (*CQ, error) {
	cq, err := C.v_create_cq(c.c, C.int(entries), ch.c)
	if cq == nil {
		return nil, errno(err)
	}
	return &CQ{c: cq}, nil
}

// Poll moves completions to dst and returns how many, without waiting. No
// allocation, no system call with most devices.
func (q *CQ) Poll(dst []WC) (int, error) {
	n, err := C.v_poll_cq(q.c, C.int(min(len(dst), pollBatch)), &q.batch[0])
	if n < 0 {
		return 0, errno(err)
	}
	for i := range int(n) {
		w := &q.batch[i]
		dst[i] = WC{uint64(w.wr_id), int(w.status), uint32(w.byte_len), uint32(w.vendor_err)}
	}
	return int(n), nil
}

// Arm asks for one event at the next completion. Completions that came before
// give none: poll once more after it.
func (q *CQ) Arm() error {
	if r, err := C.v_req_notify_cq(q.c); r != 0 {
		return errno(err)
	}
	return nil
}

// Destroy removes the queue; EBUSY while a queue pair uses it.
func (q *CQ) Destroy() error {
	if r, err := C.v_destroy_cq(q.c); r != 0 {
		return errno(err)
	}
	return nil
}
