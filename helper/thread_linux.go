package helper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"pinwheel/schedule"
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

// runDelayFile is /proc/thread-self/schedstat of the thread that has opened it
// (Documentation/scheduler/sched-stats.rst; since Linux 3.17, with CONFIG_SCHED_INFO). The file is nil where there is none.
type runDelayFile struct{ file *os.File }

func openRunDelay() runDelayFile {
	f, _ := os.Open("/proc/thread-self/schedstat")
	return runDelayFile{f}
}

// read reads how long the thread has waited for a processor: "run_time run_delay timeslices".
func (f runDelayFile) read() (d schedule.RunDelay, ok bool) {
	var line [64]byte                 // three numbers of at most 20 digits
	n, _ := f.file.ReadAt(line[:], 0) // io.EOF after that
	fields := bytes.Fields(line[:n])
	if len(fields) != 3 {
		return d, false
	}
	waited, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	runs, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	return schedule.RunDelay{WaitedNs: waited, Runs: runs}, err1 == nil && err2 == nil
}

// close closes what was opened.
func (f runDelayFile) close() { f.file.Close() }
