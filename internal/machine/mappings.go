package machine

import (
	"fmt"
	"os"
	"strings"

	"pinwheel/mem"
)

// Mapping is a line of /proc/self/maps: a mapping of this process.
type Mapping struct {
	Range  mem.Range
	Shared bool
	Inode  uint64 // of the file behind it; 0 for none
}

// Mappings returns the mappings of this process, in ascending order.
func Mappings() (all []Mapping, err error) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		m, err := parseMapping(line)
		if err != nil {
			return nil, fmt.Errorf("/proc/self/maps: %q: %w", line, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// parseMapping reads "start-end perms offset major:minor inode [name]" (proc_pid_maps(5)).
func parseMapping(line string) (m Mapping, err error) {
	var perms, dev string
	var offset uint64
	_, err = fmt.Sscanf(line, "%x-%x %s %x %s %d", &m.Range.Start, &m.Range.End, &perms, &offset, &dev, &m.Inode)
	m.Shared = len(perms) == 4 && perms[3] == 's'
	return m, err
}
