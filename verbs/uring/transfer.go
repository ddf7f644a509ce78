package uring

import (
	"sync"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// transferQueue is the part of a ring that moves bytes; unused until the
// first transfer.
type transferQueue struct {
	// mu serialises the transfers of a ring, over the system calls: they are
	// for tests and checks, and may wait for a pipe without delaying
	// registrations. Taken during a call; nothing is taken under it.
	mu     sync.Mutex
	queues *queues
}

// WriteFixed writes the n bytes at addr to fd at offset off (-1: at the file's
// own position, as for a pipe), through the registration g: from the pages
// that g pinned, whatever is mapped at addr now. That is what a device would
// send. The bytes must lie in g. It blocks as write(2) would, and Close waits for
// it. Errors are those of verbs, or the errno of the file.
func (p *Provider) WriteFixed(g verbs.Region, addr mem.Addr, n, fd int, off int64) (int, error) {
	return p.transfer("IORING_OP_WRITE_FIXED", opWriteFixed, g, addr, n, fd, off)
}

// ReadFixed reads up to n bytes of fd through the registration g: into the
// pages that g pinned, as a device would receive. See WriteFixed.
func (p *Provider) ReadFixed(g verbs.Region, addr mem.Addr, n, fd int, off int64) (int, error) {
	return p.transfer("IORING_OP_READ_FIXED", opReadFixed, g, addr, n, fd, off)
}

func (p *Provider) transfer(name string, op uint8, g verbs.Region, addr mem.Addr, n, fd int, off int64) (int, error) {
	if err := p.regions.Enter(name, g.Range); err != nil {
		return 0, err
	}
	defer p.regions.Leave()
	reg, ok := p.regions.Get(g.Handle)
	if !ok {
		return 0, &verbs.Error{Op: name, Range: g.Range, Kind: verbs.ErrUnknownRegion}
	}
	want := mem.Range{Start: addr, End: addr + mem.Addr(n)}
	if n <= 0 || !reg.rng.Contains(want) {
		return 0, &verbs.Error{Op: name, Range: want, Kind: verbs.ErrNotMapped, Errno: syscall.EFAULT}
	}
	done, piece := 0, 0
	for part := range pieces(reg.rng) {
		now := mem.Range{Start: max(part.Start, want.Start), End: min(part.End, want.End)}
		slot := reg.slots.at(piece)
		piece++
		if now.Empty() {
			continue
		}
		moved, errno := reg.ring.transfer(sqe{opcode: op, fd: int32(fd), off: uint64(off), addr: uint64(now.Start),
			len: uint32(now.Len()), bufIndex: slot})
		done += moved
		if errno != 0 {
			return done, verbs.Fail(name, now, errno)
		}
		if moved < int(now.Len()) {
			break
		}
		if off >= 0 {
			off += int64(moved)
		}
	}
	return done, nil
}

// transfer runs s on the ring, which it enables if it is the first.
func (r *ring) transfer(s sqe) (int, syscall.Errno) {
	r.io.mu.Lock()
	defer r.io.mu.Unlock()
	if r.io.queues == nil {
		q, err := mapQueues(r.fd, &r.params)
		if err != nil {
			return 0, syscall.ENOMEM
		}
		if errno := enable(r.fd); errno != 0 {
			q.unmap()
			return 0, errno
		}
		r.io.queues = q
	}
	return r.io.queues.run(r.fd, s)
}

// unmap frees the queues. Nobody uses them any more.
func (t *transferQueue) unmap() {
	if t.queues != nil {
		t.queues.unmap()
	}
}
