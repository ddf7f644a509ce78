package helper

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// threadCPUNs returns the processor time that a live thread of this process
// has used. Its clock is CPUCLOCK_PERTHREAD|CPUCLOCK_SCHED of
// <linux/posix-timers.h>, what pthread_getcpuclockid(3) returns.
func threadCPUNs(tid int) (int64, error) {
	const perThreadSched = 4 | 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^tid<<3|perThreadSched), &ts)
	return ts.Nano(), err
}

// ownCPUNs returns the processor time that the calling thread has used.
func ownCPUNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // it can't fail
	return ts.Nano()
}

// setExactTimers asks that sleeps of the calling thread be not prolonged by
// the usual 50 us of slack (PR_SET_TIMERSLACK, prctl(2), Linux 2.6.28).
// Without it sleeps are late, which the Thread measures and allows for.
func setExactTimers() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// pinThread binds the calling thread to one processor.
func pinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// ownRunDelay reads how long the calling thread has waited for a processor: "run_time run_delay timeslices" of
// /proc/thread-self/schedstat (Documentation/scheduler/sched-stats.rst; since Linux 3.17, with
// CONFIG_SCHED_INFO). ok is false where there is none.
func ownRunDelay() (d runDelay, ok bool) {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return d, false
	}
	var ran int64
	n, err := fmt.Sscan(string(text), &ran, &d.waitedNs, &d.runs)
	return d, n == 3 && err == nil
}
