//go:build linux

package clock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawNanosleep is clock_nanosleep(2) on CLOCK_MONOTONIC without telling the Go
// scheduler.
func rawNanosleep(ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}
