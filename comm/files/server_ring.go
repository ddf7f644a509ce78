package files

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// rings keeps the rings of transfers for the next ones, with their registrations if the policy keeps those.
type rings struct {
	keep int64 // bytes that are kept
	// forget ends registrations of memory before it is unmapped.
	forget func(mem.Range)

	// mu is a leaf.
	mu   sync.Mutex
	idle map[int64][][]byte // by size
	kept int64              // bytes
}

// get returns a ring of n bytes, outside of the heap of Go.
func (rs *rings) get(n int64) ([]byte, error) {
	rs.mu.Lock()
	if same := rs.idle[n]; len(same) > 0 {
		b := same[len(same)-1]
		rs.idle[n] = same[:len(same)-1]
		rs.kept -= n
		rs.mu.Unlock()
		return b, nil
	}
	rs.mu.Unlock()
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return b, os.NewSyscallError("mmap", err)
}

// put gives a ring back.
func (rs *rings) put(b []byte) {
	n := int64(len(b))
	rs.mu.Lock()
	keep := rs.kept+n <= rs.keep
	if keep {
		rs.idle[n] = append(rs.idle[n], b)
		rs.kept += n
	}
	rs.mu.Unlock()
	if !keep {
		rs.unmap(b)
	}
}

func (rs *rings) unmap(b []byte) {
	rs.forget(mem.RangeOf(b))
	_ = unix.Munmap(b) // it fails for nothing that we mapped
}

// close unmaps all that is idle.
func (rs *rings) close() {
	rs.mu.Lock()
	idle := rs.idle
	rs.idle, rs.kept = map[int64][][]byte{}, 0
	rs.mu.Unlock()
	for _, same := range idle {
		for _, b := range same {
			rs.unmap(b)
		}
	}
}
