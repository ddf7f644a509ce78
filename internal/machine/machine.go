// Package machine describes the computer that a program runs on, for whoever
// says where something was measured.
package machine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Machine is a computer, by nothing that names its owner.
type Machine struct {
	Processor   string `json:"processor"`    // model
	Processors  int    `json:"processors"`   // that this process may use
	MemoryBytes int64  `json:"memory_bytes"` // 0 if it is not known
	Kernel      string `json:"kernel"`       // release, as uname -r has it
}

// This describes this machine. A kernel that names no processor has the architecture there.
func This() Machine {
	m := Of(os.DirFS("/"))
	m.Processor, m.Kernel = cmp.Or(m.Processor, runtime.GOARCH), cmp.Or(m.Kernel, "unknown")
	return m
}

// Of describes the machine with this root directory, except for Processors, which are always those of this
// process. What is not known is empty.
func Of(root fs.FS) Machine {
	m := Machine{Processors: runtime.NumCPU()}
	if text, err := fs.ReadFile(root, "proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	m.Processor, _ = field(root, "proc/cpuinfo", "model name")
	m.MemoryBytes, _ = Bytes(root, "proc/meminfo", "MemTotal")
	return m
}

// field returns the value of the first line "name: value" of a file of proc(5).
func field(root fs.FS, file, name string) (string, error) {
	values, err := Fields(root, file, name)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// Fields returns the value of each name, all as of one read of the file.
func Fields(root fs.FS, file string, names ...string) ([]string, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	values, found := make([]string, len(names)), make([]bool, len(names))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if i := slices.Index(names, strings.TrimSpace(name)); i >= 0 && !found[i] {
			values[i], found[i] = strings.TrimSpace(value), true
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		return nil, fmt.Errorf("/%s has no field %s", file, names[i])
	}
	return values, nil
}

// Bytes returns a value that is given in kB, in bytes.
func Bytes(root fs.FS, file, name string) (int64, error) {
	value, err := field(root, file, name)
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 53)
	if err != nil {
		return 0, fmt.Errorf("/%s: %s is %q, not a number of kB", file, name, value)
	}
	return kb << 10, nil
}

// AvailableBytes returns what new mappings can use without swapping.
func AvailableBytes() (uint64, error) {
	n, err := Bytes(os.DirFS("/"), "proc/meminfo", "MemAvailable")
	return uint64(n), err
}
