package vmwatch

import (
	"bufio"
	"fmt"
	"os"
	"sync"

	"pinwheel/mem"
)

// privateAnonymous reports whether all of r is private memory without a file
// behind it: only this process can change what its pages are. Unmapped or
// unreadable counts as no.
func privateAnonymous(r mem.Range) bool {
	maps, err := selfMaps()
	if err != nil {
		return false
	}
	for at := r.Start; at < r.End; {
		v, err := queryVMA(maps, at)
		if err == errNoQuery {
			return privateAnonymousSlow(r)
		}
		if err != nil || v.shared || v.inode != 0 || !v.r.Contains(mem.Range{Start: at, End: at + 1}) {
			return false
		}
		at = v.r.End
	}
	return true
}

// vma is one line of /proc/self/maps.
type vma struct {
	r      mem.Range
	shared bool
	inode  uint64
}

// selfMaps is /proc/self/maps, opened once: it always shows the process that
// opened it. Closed by the end of the process.
var selfMaps = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/maps") })

// privateAnonymousSlow reads the text: kernels before 6.11 have no query.
func privateAnonymousSlow(r mem.Range) bool {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return false
	}
	defer f.Close()
	at := r.Start
	for lines := bufio.NewScanner(f); at < r.End && lines.Scan(); {
		v, err := parseVMA(lines.Text())
		if err != nil {
			return false
		}
		if v.r.End <= at {
			continue
		}
		if v.r.Start > at || v.shared || v.inode != 0 {
			return false
		}
		at = v.r.End
	}
	return at >= r.End
}

// parseVMA reads "start-end perms offset major:minor inode [name]" (proc_pid_maps(5)).
func parseVMA(line string) (v vma, err error) {
	var perms, dev string
	var offset uint64
	_, err = fmt.Sscanf(line, "%x-%x %s %x %s %d", &v.r.Start, &v.r.End, &perms, &offset, &dev, &v.inode)
	v.shared = len(perms) == 4 && perms[3] == 's'
	return v, err
}
