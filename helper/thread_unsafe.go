//go:build linux

package helper

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// timeSliceNs is t_slice of Li et al., CF'11, equation 2: what sched_rr_get_interval(2)
// says of the calling thread, or the usual 3 ms of the fair scheduler.
func timeSliceNs() int64 {
	var ts unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_RR_GET_INTERVAL, 0, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 || ts.Nano() == 0 {
		return 3_000_000 // 3 ms
	}
	return ts.Nano()
}

// CurrentCPU returns the processor on which the caller runs now, or AnyCPU
// (getcpu(2), Linux 2.6.19). A goroutine may be elsewhere at once.
func CurrentCPU() int {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return AnyCPU
	}
	return int(cpu)
}
