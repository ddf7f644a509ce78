package calibrate

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// machine describes this one in a line that names nobody: "AMD EPYC, 2 CPUs, 23 GiB".
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	s := fmt.Sprintf("%s, %d CPUs", model, runtime.NumCPU())
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		s += fmt.Sprintf(", %d GiB", uint64(info.Totalram)*uint64(info.Unit)>>30)
	}
	return s
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
