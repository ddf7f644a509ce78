package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"pinwheel/mem"
)

// Mapping is a line of /proc/self/maps: a mapping of this process.
type Mapping struct {
	Range      mem.Range
	Readable   bool
	Writable   bool
	Shared     bool
	Executable bool
	Offset     uint64 // of Range.Start in the file
	Inode      uint64 // of the file behind it; 0 for none
	Path       string // of that file, or a name in brackets, or ""
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

// parseMapping reads "start-end perms offset major:minor inode [name]" (proc_pid_maps(5)). A process has hundreds.
func parseMapping(line string) (m Mapping, err error) {
	var word [5]string
	for i := range word {
		word[i], line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	var start, end uint64
	first, last, _ := strings.Cut(word[0], "-")
	for _, n := range []struct {
		text string
		base int
		to   *uint64
	}{{first, 16, &start}, {last, 16, &end}, {word[2], 16, &m.Offset}, {strings.TrimSpace(word[4]), 10, &m.Inode}} {
		if *n.to, err = strconv.ParseUint(n.text, n.base, 64); err != nil {
			return m, err
		}
	}
	m.Range = mem.Range{Start: mem.Addr(start), End: mem.Addr(end)}
	if len(word[1]) == 4 {
		m.Readable, m.Writable = word[1][0] == 'r', word[1][1] == 'w'
		m.Executable, m.Shared = word[1][2] == 'x', word[1][3] == 's'
	}
	m.Path = strings.TrimSpace(line)
	return m, nil
}
