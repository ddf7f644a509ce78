package verbs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"pinwheel/mem"
)

// StatusBytes returns, in bytes, a field of /proc/self/status that is given in
// kB; see proc_pid_status(5). "VmPin" is what RDMA drivers and io_uring have
// pinned of this process, "VmLck" what mlock has locked, each as the kernel
// counts it: compare with Usage. It reads the whole file: some 30 us.
func StatusBytes(field string) (int64, error) { return kilobytes("/proc/self/status", field) }

// PhysicalBytes returns the size of this machine's memory: nobody can pin
// more. Where that can't be read it is mem.Unlimited. Safe for concurrent use.
var PhysicalBytes = sync.OnceValue(func() int64 {
	n, err := kilobytes("/proc/meminfo", "MemTotal")
	if err != nil {
		return mem.Unlimited
	}
	return n
})

func kilobytes(path, field string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name != field {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %q is not a number of kB", path, strings.TrimSpace(line))
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("%s has no field %s", path, field)
}
