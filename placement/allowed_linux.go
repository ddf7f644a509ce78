package placement

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// AllowedCPUs returns the processors that a helper of this process may use, in
// ascending order: its affinity mask. A launcher binds each rank to one core so
// that ranks don't move, but a helper belongs on another core than its rank. So if
// the mask is within one core, AllowedCPUs returns those of the job's cpuset.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("placement: sched_getaffinity: %w", err)
	}
	own, root := cpuList(&set), os.DirFS("/")
	if !within(own, coreOf(root, own[0])) {
		return own, nil
	}
	result := make(chan unix.CPUSet)
	go func() {
		// Locked and not unlocked: the thread with the wide mask ends here.
		runtime.LockOSThread()
		wide := unix.CPUSet{}
		wide.Fill()
		got := set
		// The kernel cuts a mask down to the cpuset; cpuset(7).
		if unix.SchedSetaffinity(0, &wide) == nil {
			_ = unix.SchedGetaffinity(0, &got)
		}
		result <- got
	}()
	set = <-result
	return widened(own, cpuList(&set), quiet(root)), nil
}

// widened adds the processors of a cpuset to a mask, but not quiet ones: they are for those who are bound to them.
func widened(own, cpuset, quiet []int) []int {
	return slices.DeleteFunc(slices.Clone(cpuset), func(cpu int) bool {
		return slices.Contains(quiet, cpu) && !slices.Contains(own, cpu)
	})
}

// within reports whether all processors of a list are among others.
func within(list, others []int) bool {
	return !slices.ContainsFunc(list, func(cpu int) bool { return !slices.Contains(others, cpu) })
}

// Affinity returns the processors that a thread of this process may use; 0 is the calling one. It is nil if nobody knows.
func Affinity(tid int) []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(tid, &set) != nil {
		return nil
	}
	return cpuList(&set)
}

func cpuList(set *unix.CPUSet) []int {
	var list []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}
