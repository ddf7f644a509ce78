package regcache

import (
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

// barrier makes every running thread of this process pass a full memory
// barrier, so that readers need none. It cannot fail once registered.
func (t *table) barrier() {
	if t.confined || t.flags&flagFenced != 0 {
		return
	}
	unix.Syscall(unix.SYS_MEMBARRIER, membarrierPrivateExpedited, 0, 0)
}
