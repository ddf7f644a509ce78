package files

import (
	"context"
	"strings"

	"pinwheel/comm/files/internal/wire"
)

// grew tells whether a file is the one of an earlier stamp and has more since. Nothing tells whether what it had is
// still the same; checksums do.
func (s stamp) grew(since stamp) bool { return s.fileKey == since.fileKey && s.size > since.size }

// AllowGrowth has what is appended to the file not be a change from now on, also if that was before: what it had when it
// was opened can be read, and its checksum had. It returns whether something was appended.
func (f *File) AllowGrowth(ctx context.Context) (grew bool, err error) {
	if err := f.usable(0, 0); err != nil {
		return false, err
	}
	f.grows.Store(true)
	var a wire.Grown
	_, err = f.client.call(ctx, wire.ProcGrowth, "read", f.name, &wire.Handle{Handle: f.handle}, &a)
	return a.Grown, err
}

// is tells whether a stamp is that of the file.
func (f *File) is(s stamp) bool {
	if s.etag() == f.info.etag {
		return true
	}
	ours, _, _ := strings.Cut(string(f.info.etag), "-")
	theirs, _, _ := strings.Cut(string(s.etag()), "-")
	return f.grows.Load() && ours == theirs && s.size > f.info.size
}

// growth answers whether a file has grown, and allows that.
func (v *session) growth(_ context.Context, q *wire.Handle) (wire.Message, error) {
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	f.grows.Store(true)
	now, err := stampOf(f.file)
	if err == nil && !f.is(now) {
		err = ErrChanged
	}
	return &wire.Grown{Grown: now.grew(f.stamp)}, err
}

// is tells whether a stamp is that of the file, or of one that may have grown.
func (f *served) is(s stamp) bool { return s.same(f.stamp) || f.grows.Load() && s.grew(f.stamp) }
