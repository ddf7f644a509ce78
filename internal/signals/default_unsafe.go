package signals

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// defaultAction makes a signal do what it does to a program without handlers.
// os/signal can't: the Go runtime keeps its handler of SIGSEGV and the like,
// and ends with a traceback.
func defaultAction(s syscall.Signal) {
	var action [64]byte // struct sigaction of <asm/signal.h>, at most 32 bytes: SIG_DFL, no flags, empty mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}
