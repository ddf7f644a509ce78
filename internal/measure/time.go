package measure

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is that of this process so far, with that of the kernel for it.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails for wrong arguments only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// MachineTime is the processor time of all processes so far, in steps of 10 ms (proc_stat(5)), and 0 if it is not known.
func MachineTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	var user, nice, system int64
	_, _ = fmt.Sscanf(string(text), "cpu %d %d %d", &user, &nice, &system) // else 0
	return time.Duration(user+nice+system) * 10 * time.Millisecond
}

// Load is the load of the machine over one minute (proc_loadavg(5)), and 0 if it is not known.
func Load() (one float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &one)
	return one
}
