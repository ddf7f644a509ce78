package placement

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// cpuTimes is what /proc/stat counts for one processor since boot, in ticks.
type cpuTimes struct{ busy, total uint64 }

// readCPUTimes reads the lines "cpuN user nice system idle iowait irq softirq
// steal guest guest_nice" of /proc/stat (proc(5)). Guest time is part of user
// time already.
func readCPUTimes(root fs.FS) (map[int]cpuTimes, error) {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return nil, fmt.Errorf("placement: processor load: %w", err)
	}
	times := make(map[int]cpuTimes)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break // the processors come first
		}
		cpu, err := strconv.Atoi(number)
		if err != nil {
			continue // the sum over all
		}
		var t cpuTimes
		for i, field := range strings.Fields(rest) {
			const idle, iowait, guest = 3, 4, 8
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("placement: processor load: /proc/stat: %q", strings.TrimSpace(line))
			}
			if i >= guest {
				break
			}
			t.total += n
			if i != idle && i != iowait {
				t.busy += n
			}
		}
		times[cpu] = t
	}
	return times, nil
}

// loads returns the share of the time between two readings in which each
// processor was busy, from 0 to 1. A processor that is missing in either, or
// without a tick in between, is missing.
func loads(before, after map[int]cpuTimes) map[int]float64 {
	l := make(map[int]float64, len(after))
	for cpu, a := range after {
		b, ok := before[cpu]
		if ok && a.total > b.total && a.busy >= b.busy {
			l[cpu] = float64(a.busy-b.busy) / float64(a.total-b.total)
		}
	}
	return l
}

// present returns the processors of a list that /proc/stat knew at the last look: it leaves out those that
// are offline.
func present(list []int, times map[int]cpuTimes) []int {
	return slices.DeleteFunc(slices.Clone(list), func(cpu int) bool { _, ok := times[cpu]; return !ok })
}

const (
	// A helper takes a core if its control groups left quotaToTake processors' worth of time unused. It gives
	// the core up below quotaToKeep. What it uses itself counts, and lies between the two.
	//
	// Beyond the quota the kernel stops all threads of the group, ranks too, for up to a whole period. On the core
	// of its own rank a helper takes time from that rank alone, and the group uses no more than before.
	quotaToTake = 0.25
	quotaToKeep = 0.05
)

// isUsedUp reports whether what is left of the quotas is too little for a helper to run on a core that is
// idle. hasCore: it does so now.
func isUsedUp(left float64, hasCore bool) bool {
	if hasCore {
		return left < quotaToKeep
	}
	return left < quotaToTake
}
