package report

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Machine says where and with what a report was made.
type Machine struct {
	CPU    string
	Cores  int
	Kernel string
	Go     string
}

// ThisMachine describes this machine as far as /proc tells.
func ThisMachine() Machine {
	m := Machine{CPU: runtime.GOARCH + " processor", Cores: runtime.NumCPU(), Kernel: runtime.GOOS, Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(b))
	}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer f.Close() // only read from
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if key, value, ok := strings.Cut(sc.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
