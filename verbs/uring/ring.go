package uring

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// The calls, as errors name them.
const (
	opSetup    = "io_uring_setup"
	opTable    = "io_uring_register(BUFFERS2, sparse)"
	opRegister = "io_uring_register(BUFFERS_UPDATE)"
	opClear    = "io_uring_register(BUFFERS_UPDATE, clear)"
	opDrop     = "io_uring_register(UNREGISTER_BUFFERS)"
)

// ring is an io_uring instance with its table.
type ring struct {
	fd     int
	params setupParams
	io     transferQueue

	// mu serialises updates of the table, as the kernel would anyway: holding
	// it here lets others see that the ring is busy and take another one. It is
	// held over the system call. Taken during a call, and by grow, of a
	// ring that nobody else knows yet, under Provider.growing; nothing is taken
	// under it.
	mu      sync.Mutex
	scratch *scratch
	free    []uint16 // empty slots
}

// newRing opens a ring with a table of the given number of empty slots.
func newRing(slots uint32) (*ring, error) {
	fd, params, errno := setup()
	if errno != 0 {
		return nil, verbs.Fail(opSetup, mem.Range{}, errno)
	}
	r := &ring{fd: fd, params: params}
	if errno := makeTable(fd, slots); errno != 0 {
		r.close()
		return nil, verbs.Fail(opTable, mem.Range{}, errno)
	}
	var err error
	if r.scratch, err = newScratch(); err != nil {
		r.close()
		return nil, verbs.Fail("mmap", mem.Range{}, syscall.ENOMEM)
	}
	r.free = make([]uint16, slots)
	for i := range r.free {
		r.free[i] = uint16(len(r.free) - 1 - i) // the lowest slot is taken first
	}
	return r, nil
}

// pin registers rng piece by piece, or nothing of it. The caller holds mu and
// knows that there are enough slots.
func (r *ring) pin(rng mem.Range) (slots, error) {
	var s slots
	for piece := range pieces(rng) {
		slot := r.free[len(r.free)-1]
		if errno := r.scratch.fill(r.fd, slot, piece); errno != 0 {
			err := verbs.Fail(opRegister, rng, errno)
			_ = r.unpin(s) // only what was pinned a moment ago
			return slots{}, err
		}
		r.free = r.free[:len(r.free)-1]
		s.add(slot)
	}
	return s, nil
}

// unpin empties slots. After an error it may be called again: emptying an
// empty slot does nothing. The caller holds mu.
func (r *ring) unpin(s slots) syscall.Errno {
	for i := range s.n {
		if errno := r.scratch.fill(r.fd, s.at(i), mem.Range{}); errno != 0 {
			return errno
		}
	}
	for i := range s.n {
		r.free = append(r.free, s.at(i))
	}
	return 0
}

// close releases all that the ring holds. Nobody uses it any more.
func (r *ring) close() error {
	var errno syscall.Errno
	if r.scratch != nil {
		errno = dropTable(r.fd)
		r.scratch.free()
	}
	r.io.unmap()
	if err := unix.Close(r.fd); err != nil && errno == 0 {
		errno = err.(syscall.Errno)
	}
	if errno != 0 {
		return verbs.Fail(opDrop, mem.Range{}, errno)
	}
	return nil
}
