package files

import (
	"context"
	"fmt"
	"iter"

	"pinwheel/comm/files/internal/holes"
	"pinwheel/comm/files/internal/wire"
)

// Extent is a part of a file.
type Extent struct{ Off, Len int64 }

// Data returns the parts of the file from an offset on that are no holes, in order: the rest reads as zeros. Without
// holes that is one. Holes of less than 16 KiB may be in the parts, and some of less than 32 KiB. It ends with the first
// error, and fails with ErrChanged if the file is not the one that was opened.
func (f *File) Data(ctx context.Context, from int64) iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		size := f.info.size
		if err := f.usable(from, 0); err != nil {
			yield(Extent{}, err)
			return
		}
		for from < size {
			var a wire.Extents
			q := wire.Position{Handle: f.handle, Off: from}
			_, err := f.client.call(ctx, wire.ProcExtents, "read", f.name, &q, &a)
			for _, e := range a.Extents {
				if err != nil {
					break
				}
				if e.Off < from || e.Len <= 0 || e.Off > size-e.Len {
					err = fmt.Errorf("%w: %d bytes at %d of a file of %d", ErrProtocol, e.Len, e.Off, size)
				} else if from = e.Off + e.Len; !yield(Extent(e), nil) {
					return
				}
			}
			if err == nil && (a.Until < from || a.Until == q.Off) {
				err = fmt.Errorf("%w: extents up to %d", ErrProtocol, a.Until)
			}
			if err != nil {
				yield(Extent{}, err)
				return
			}
			from = a.Until
		}
	}
}

// extents answers with the parts of a file that are no holes.
func (v *session) extents(ctx context.Context, q *wire.Position) (wire.Message, error) {
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	a := &wire.Extents{Until: q.Off}
	for a.Until < f.stamp.size && len(a.Extents) < wire.MaxExtents && ctx.Err() == nil {
		begin, end, err := holes.NextData(f.file, a.Until, f.stamp.size)
		if err != nil {
			return nil, err
		}
		if a.Until = end; begin >= end { // all the rest is a hole
			a.Until = f.stamp.size
			break
		}
		a.Extents = append(a.Extents, wire.Extent{Off: begin, Len: end - begin})
	}
	if err := f.unchanged(); err != nil {
		return nil, err
	}
	return a, ctx.Err()
}
