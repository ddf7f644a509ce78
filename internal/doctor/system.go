package doctor

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// read returns a file of the machine without the spaces around it, "" if it
// can't be read.
func (m *Machine) read(name string) string {
	text, err := fs.ReadFile(m.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (m *Machine) getenv(name string) (value string) {
	for _, entry := range m.Environ {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			value = v
		}
	}
	return value
}

func (m *Machine) system() section {
	s, this := section{name: "System"}, machine.Of(m.Root)
	s.add(OK, "kernel", "", "Linux %s, %s, pages of %s", this.Kernel, m.Arch, mem.FormatBytes(m.PageSize))
	for line := range strings.Lines(m.read("etc/os-release")) {
		if name, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			s.add(OK, "distribution", "", "%s", strings.Trim(strings.TrimSpace(name), `"`))
		}
	}
	if this.Processor != "" {
		s.add(OK, "processor", "", "%s", this.Processor)
	}
	if this.MemoryBytes > 0 {
		s.add(OK, "memory", "", "%s", mem.FormatBytes(uint64(this.MemoryBytes)))
	}
	return s
}

// cgroupLimit returns the least memory limit of the control groups that this
// process is in, and the file that sets it; 0 for none. Registered memory
// counts. (Documentation/admin-guide/cgroup-v2.rst, memory.max; cgroup-v1/memory.rst)
func (m *Machine) cgroupLimit() (bytes int64, file string) {
	for line := range strings.Lines(m.read("proc/self/cgroup")) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		root, name := "sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "memory":
			root, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case controllers != "":
			continue
		}
		for dir := path.Join(root, group); strings.HasPrefix(dir, root); dir = path.Dir(dir) {
			n, err := strconv.ParseInt(m.read(path.Join(dir, name)), 10, 64)
			if err == nil && n < unlimitedV1 && (bytes == 0 || n < bytes) {
				bytes, file = n, "/"+path.Join(dir, name)
			}
		}
	}
	return bytes, file
}

// unlimitedV1 is what version 1 shows without a limit: PAGE_COUNTER_MAX in
// bytes, LONG_MAX rounded down to pages.
const unlimitedV1 = 1<<63 - 1<<16
