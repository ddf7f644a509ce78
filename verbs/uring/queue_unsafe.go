package uring

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From <linux/io_uring.h>; see io_uring_enter(2).
const (
	opReadFixed  = 4 // IORING_OP_READ_FIXED, Linux 5.1
	opWriteFixed = 5 // IORING_OP_WRITE_FIXED, 5.1

	enterGetEvents = 1          // IORING_ENTER_GETEVENTS
	offSQRing      = 0          // IORING_OFF_SQ_RING; holds the CQ ring as well since 5.4
	offSQEs        = 0x10000000 // IORING_OFF_SQES
)

// sqe is struct io_uring_sqe.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, rwFlags  uint32
	userData      uint64
	bufIndex, _   uint16
	_             uint32
	_             [2]uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// queues are the mapped submission and completion queues of one ring. The
// ring has one submission entry, so there is one transfer at a time. Heads and tails are
// raw words, for sync/atomic: the kernel shares them.
type queues struct {
	sqHead, sqTail, sqIndex *uint32
	cqHead, cqTail          *uint32
	cqMask                  uint32
	cqes                    unsafe.Pointer
	sqe                     *sqe
	mapped                  [][]byte
}

// mapQueues maps the queues of a ring.
func mapQueues(fd int, p *setupParams) (*queues, error) {
	q := new(queues)
	ringBytes := max(uintptr(p.sq.array)+4*uintptr(p.sqEntries),
		uintptr(p.cq.cqes)+uintptr(p.cqEntries)*unsafe.Sizeof(cqe{}))
	rings, err := q.mmap(fd, offSQRing, ringBytes)
	if err != nil {
		return nil, err
	}
	sqes, err := q.mmap(fd, offSQEs, uintptr(p.sqEntries)*unsafe.Sizeof(sqe{}))
	if err != nil {
		q.unmap()
		return nil, err
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Add(rings, off)) }
	q.sqHead, q.sqTail, q.sqIndex = word(p.sq.head), word(p.sq.tail), word(p.sq.array)
	q.cqHead, q.cqTail, q.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.ringMask)
	q.cqes, q.sqe = unsafe.Add(rings, p.cq.cqes), (*sqe)(sqes)
	return q, nil
}

func (q *queues) mmap(fd int, off int64, n uintptr) (unsafe.Pointer, error) {
	b, err := unix.Mmap(fd, off, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	q.mapped = append(q.mapped, b)
	return unsafe.Pointer(unsafe.SliceData(b)), nil
}

func (q *queues) unmap() {
	for _, b := range q.mapped {
		_ = unix.Munmap(b)
	}
}

// run submits one entry and waits for its completion.
func (q *queues) run(fd int, s sqe) (int, syscall.Errno) {
	*q.sqe, *q.sqIndex = s, 0
	atomic.StoreUint32(q.sqTail, *q.sqTail+1)
	for atomic.LoadUint32(q.cqTail) == *q.cqHead {
		// A signal ends the wait; what was submitted by then is not submitted again.
		pending := *q.sqTail - atomic.LoadUint32(q.sqHead)
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(pending), 1, enterGetEvents, 0, 0)
		if errno != 0 && errno != unix.EINTR {
			// it was not submitted: the kernel takes entries during the call only
			atomic.StoreUint32(q.sqTail, atomic.LoadUint32(q.sqHead))
			return 0, errno
		}
	}
	c := (*cqe)(unsafe.Add(q.cqes, uintptr(*q.cqHead&q.cqMask)*unsafe.Sizeof(cqe{})))
	res := c.res
	atomic.StoreUint32(q.cqHead, *q.cqHead+1)
	if res < 0 {
		return 0, syscall.Errno(-res)
	}
	return int(res), 0
}
