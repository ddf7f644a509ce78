package prefault

import (
	"pinwheel/internal/machine"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// sliceBytes is what a thread touches before it looks whether it should go on. Slices end where a huge page does, so
// no two threads touch the same.
const sliceBytes = 32 << 20

// part is memory that is touched in one call.
type part struct {
	mem.Range
	write bool // so that it can be written
}

// plan cuts r into parts. It fails if some of r is not mapped, or not so that it can be used.
func plan(r mem.Range, write bool, all []machine.Mapping) (parts []part, err error) {
	at := r.Start
	for _, m := range all {
		switch {
		case m.Range.End <= at:
			continue
		case at >= r.End:
			return parts, nil
		case m.Range.Start > at:
			return nil, notMapped("prefault", mem.Range{Start: at, End: min(m.Range.Start, r.End)})
		}
		here := mem.Range{Start: at, End: min(m.Range.End, r.End)}
		switch {
		case !m.Readable && !m.Writable:
			return nil, notMapped("prefault of protected memory", here)
		case write && !m.Writable:
			return nil, notMapped("prefault for writing of read-only memory", here)
		}
		parts = cut(parts, here, write || isAnonymous(m) && m.Writable)
		at = here.End
	}
	if at < r.End {
		return nil, notMapped("prefault", mem.Range{Start: at, End: r.End})
	}
	return parts, nil
}

// isAnonymous reports whether reading a page that was never written provides none: it shows the page of zeros that all
// processes share, which nothing pins. Whoever registers such memory has it written first. Pages of files, and those of
// shared memory, are provided by reading, and writing would change what has to be written back.
func isAnonymous(m machine.Mapping) bool { return m.Inode == 0 && !m.Shared }

func cut(parts []part, r mem.Range, write bool) []part {
	for !r.Empty() {
		next := r
		if end := r.Start&^(sliceBytes-1) + sliceBytes; end > r.Start && end < r.End {
			next.End = end
		}
		parts = append(parts, part{next, write})
		r.Start = next.End
	}
	return parts
}

func notMapped(op string, r mem.Range) error {
	return &verbs.Error{Op: op, Range: r, Kind: verbs.ErrNotMapped}
}
