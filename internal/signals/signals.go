// Package signals ends this process by a signal, so that whoever waits for it,
// a shell or a batch system, sees what it would see of a program without handlers.
package signals

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// End ends this process by s, without a core file. Where that is not possible,
// since s is ignored or blocked, the exit status is the one that a shell gives such a death.
func End(s syscall.Signal) {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	defaultAction(s)
	runtime.LockOSThread() // a signal for another thread might come after os.Exit
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
	os.Exit(128 + int(s))
}
