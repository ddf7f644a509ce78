package doctor

import (
	"io/fs"
	"strings"

	"pinwheel/internal/machine"
	"pinwheel/internal/tools/launch"
	"pinwheel/mem"
)

// read returns a file of the machine without the spaces around it, "" if it
// can't be read.
func (m *Machine) read(name string) string {
	text, _ := fs.ReadFile(m.Root, name)
	return strings.TrimSpace(string(text))
}

func (m *Machine) getenv(name string) string {
	value, _ := launch.Getenv(m.Environ, name)
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
