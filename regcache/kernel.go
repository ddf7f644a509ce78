package regcache

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// Commands of membarrier(2), <linux/membarrier.h>, since Linux 4.14.
const (
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
)

// haveMembarrier registers this process for expedited barriers, once.
var haveMembarrier = sync.OnceValue(func() bool {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierRegisterPrivateExpedited, 0, 0)
	return errno == 0
})

// ProbeMembarrier returns nil if hits need no memory barrier of their own, since
// the side that invalidates can make one in every thread (membarrier(2)), else
// one line that says why not. The cache works either way.
func ProbeMembarrier() error {
	if !haveMembarrier() {
		return errors.New("membarrier unavailable: kernel older than 4.14, or a seccomp filter forbids it; " +
			"every hit costs a memory barrier")
	}
	return nil
}

// barrier makes every running thread of this process pass a full memory
// barrier, so that readers need none. It cannot fail once registered.
func (t *table) barrier() {
	t.barriers++
	if t.confined || t.flags&flagFenced != 0 {
		return
	}
	unix.Syscall(unix.SYS_MEMBARRIER, membarrierPrivateExpedited, 0, 0)
}

// populate makes the kernel provide the pages of m in one call instead of a fault for each; huge
// ones if m is as large. It may refuse (before Linux 5.14, or without huge pages): then
// faults do.
func populate(m []byte) {
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(m, unix.MADV_POPULATE_WRITE)
}
