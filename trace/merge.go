package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Merge puts traces of the same run, as a recorder writes them one per rank,
// into one at path out. Frames are verified and copied as they are. Traces
// that are cut off go in up to their last whole frame; torn has the
// *TornError of each. A job may consist of several programs (MPMD): the trace
// has the names of all, separated by " : " as launchers do.
func Merge(out string, files []string) (h Header, torn []error, err error) {
	var w *Writer
	for _, name := range files {
		f, err := Open(name)
		if err == nil {
			if w == nil {
				w, err = createMerged(out, f, files[1:])
			}
			if err == nil {
				err = w.copyAll(f)
			}
			if t := f.Torn(); t != nil {
				torn = append(torn, t)
			}
			_ = f.Close() // only read from
		}
		if err != nil {
			if w != nil {
				_ = w.Abort() // err is the cause
			}
			return Header{}, nil, err
		}
	}
	if w == nil {
		return Header{}, nil, errors.New("no trace to merge")
	}
	return w.Header(), torn, w.Close()
}

// createMerged begins the trace of first and others.
func createMerged(out string, first *File, others []string) (*Writer, error) {
	h := first.Header()
	programs := []string{h.Program}
	for _, name := range others {
		f, err := Open(name)
		if err != nil {
			return nil, err
		}
		if p := f.Header().Program; !slices.Contains(programs, p) {
			programs = append(programs, p)
		}
		_ = f.Close() // only read from
	}
	h.Program = strings.Join(programs, " : ")
	h.Program = h.Program[:min(len(h.Program), maxStringBytes)]
	return Create(out, h)
}

// copyAll copies all ranks of f, which must be of the same run.
func (w *Writer) copyAll(f *File) error {
	h, have := f.Header(), w.header
	if h.Ranks != have.Ranks || h.Clock != have.Clock || h.ThresholdBytes != have.ThresholdBytes {
		return fmt.Errorf("%s: run of %d ranks, threshold %d, %s; the traces before are of %d ranks, threshold %d, %s",
			f.path, h.Ranks, h.ThresholdBytes, h.Clock, have.Ranks, have.ThresholdBytes, have.Clock)
	}
	var buf frameBuffer
	for _, rank := range f.Ranks() {
		if w.ranks[rank] != nil {
			return fmt.Errorf("%s: rank %d is in another trace too", f.path, rank)
		}
		rw, err := w.Rank(rank) // which makes it known
		if err != nil {
			return err
		}
		if f.format < 4 {
			if err := rw.Unseen(Unseen{What: unseenBefore}); err != nil {
				return err
			}
		}
		ri := f.ranks[rank]
		for _, entries := range [][]indexEntry{ri.defs, ri.recs} {
			for _, e := range entries {
				fi, err := buf.read(f, e.offset)
				if err == nil && fi != e.frameInfo {
					err = corruptf("index and frame at byte %d disagree", e.offset)
				}
				if err != nil {
					return fmt.Errorf("%s: rank %d: %w", f.path, rank, err)
				}
				w.writePacked(fi, buf.packed)
			}
		}
	}
	return w.err
}
