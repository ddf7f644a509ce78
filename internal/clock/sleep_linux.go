package clock

import "golang.org/x/sys/unix"

// nanosleep is clock_nanosleep(2) on CLOCK_MONOTONIC as the Go scheduler
// knows it. The error, EINTR, means an early return, which SleepNs allows.
func nanosleep(ns int64) {
	ts := unix.NsecToTimespec(ns)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
}
