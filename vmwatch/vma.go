package vmwatch

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// privateAnonymous reports whether all of r is private memory without a file
// behind it: only this process can change what its pages are. Unmapped or
// unreadable counts as no.
func privateAnonymous(r mem.Range) bool {
	all, err := mappingsIn(r)
	at := r.Start
	for _, m := range all {
		if !isPrivateAnonymous(m) || m.Range.Start > at {
			return false
		}
		at = m.Range.End
	}
	return err == nil && at >= r.End
}

func isPrivateAnonymous(m machine.Mapping) bool { return !m.Shared && m.Inode == 0 }

// mappingsIn returns the mappings that r touches, in ascending order.
func mappingsIn(r mem.Range) (found []machine.Mapping, err error) {
	maps, err := selfMaps()
	if err != nil {
		return nil, err
	}
	for at := r.Start; at < r.End; at = found[len(found)-1].Range.End {
		m, err := queryVMA(maps, at)
		switch {
		case err == errNoQuery:
			return mappingsInText(r)
		case errors.Is(err, unix.ENOENT):
			return found, nil
		case err != nil:
			return nil, err
		case m.Range.Start >= r.End:
			return found, nil
		}
		found = append(found, m)
	}
	return found, nil
}

// selfMaps is /proc/self/maps, opened once: it always shows the process that
// opened it. Closed by the end of the process.
var selfMaps = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/maps") })

// mappingsInText reads the text: kernels before 6.11 have no query.
func mappingsInText(r mem.Range) (found []machine.Mapping, err error) {
	all, err := machine.Mappings()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Range.Overlaps(r) {
			found = append(found, m)
		}
	}
	return found, nil
}
