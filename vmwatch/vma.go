package vmwatch

import (
	"os"
	"sync"

	"pinwheel/internal/machine"
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
		if err != nil || v.Shared || v.Inode != 0 || !v.Range.Contains(mem.Range{Start: at, End: at + 1}) {
			return false
		}
		at = v.Range.End
	}
	return true
}

// selfMaps is /proc/self/maps, opened once: it always shows the process that
// opened it. Closed by the end of the process.
var selfMaps = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/maps") })

// privateAnonymousSlow reads the text: kernels before 6.11 have no query.
func privateAnonymousSlow(r mem.Range) bool {
	all, err := machine.Mappings()
	if err != nil {
		return false
	}
	var private mem.Set
	for _, m := range all {
		if !m.Shared && m.Inode == 0 {
			private.Add(m.Range)
		}
	}
	return private.Contains(r)
}
