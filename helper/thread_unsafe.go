//go:build linux

package helper

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// timeSliceNs is t_slice of Li et al., CF'11, equation 2: how long a thread that computes has a processor before
// the next one gets it. sched_rr_get_interval(2) gives the slice of the calling thread in whole ticks, rounded
// down: 0 of a fair scheduler's 3 ms at 250 ticks a second. The kernel changes threads at the tick after the
// slice. The resolution of CLOCK_MONOTONIC_COARSE is one tick (clock_getres(2)).
func timeSliceNs() int64 {
	var slice, tick unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_RR_GET_INTERVAL, 0, uintptr(unsafe.Pointer(&slice)), 0)
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); errno != 0 || err != nil {
		return 4_000_000 // 4 ms
	}
	return slice.Nano() + tick.Nano()
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

// ownCPUNs returns the processor time that the calling thread has used. It does not tell the Go scheduler of the system
// call, which never blocks: each look makes one, and told of it, the runtime's monitor thread, which sleeps while all
// goroutines do, would wake up and look around every 20 us for the next millisecond or more.
func ownCPUNs() int64 {
	var ts unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0) // it can't fail
	return ts.Nano()
}
