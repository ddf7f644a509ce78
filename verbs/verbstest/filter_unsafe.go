package verbstest

import (
	"fmt"
	"pinwheel/internal/testwait"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DenySystemCall makes a system call fail with errno in this process from now
// on, for children, as the seccomp filter of a container does.
func DenySystemCall(nr int, errno syscall.Errno) error {
	runtime.LockOSThread()
	return deny(nr, errno, unix.SECCOMP_FILTER_FLAG_TSYNC)
}

// WithoutCall returns a function that runs another one on a thread on which a
// system call fails with errno. All other threads go on as they were.
func WithoutCall(nr int, errno syscall.Errno) func(testing.TB, func()) {
	return func(t testing.TB, f func()) {
		t.Helper()
		var err error
		testwait.OnThreadOfItsOwn(func() { // and its filter
			if err = deny(nr, errno, 0); err == nil {
				f()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// deny installs a seccomp filter for the calling thread or, with
// SECCOMP_FILTER_FLAG_TSYNC, for all threads; see seccomp(2).
func deny(nr int, errno syscall.Errno, flags uintptr) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", err)
	}
	const nrOffset = 0 // of nr in struct seccomp_data, <linux/seccomp.h>
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nrOffset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(nr)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	arg := unix.SockFprog{Len: uint16(len(prog)), Filter: unsafe.SliceData(prog)}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&arg)))
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
