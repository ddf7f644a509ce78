package files

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

// target is a window of a client.
type target struct {
	in      *vmmc.Import
	several atomic.Bool // long reads into it have gone on at a time
}

func (t *target) close() { t.in.Unimport() }

// importTime is how long a client may take to let the server import its window.
const importTime = 10 * time.Second

// window imports an export of the client.
func (v *session) window(ctx context.Context, q *wire.Window) (wire.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	in, err := v.node.Import(ctx, q.Export, v.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", syscall.EFAULT, err)
	}
	if in.Bytes() != uint64(q.Bytes) {
		in.Unimport()
		return nil, fmt.Errorf("%w: a window of %d bytes, not %d", syscall.EFAULT, in.Bytes(), q.Bytes)
	}
	h, err := v.handles.add(&target{in: in})
	if err != nil {
		return nil, err
	}
	return &wire.Target{Handle: h, Way: v.registrar.way(ctx, in)}, nil
}

// read sends a range of a file to a window, or in the answer.
func (v *session) read(ctx context.Context, q *wire.Read) (wire.Message, error) {
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	if q.Window == 0 {
		return v.readInline(f, q)
	}
	w, err := find[*target](&v.handles, q.Window)
	if err != nil {
		return nil, err
	}
	n := f.clamp(q.Off, q.Len)
	if q.Len > wire.MaxRead || uint64(q.At) > w.in.Bytes() || uint64(q.Len) > w.in.Bytes()-uint64(q.At) {
		return nil, fmt.Errorf("%w: %d bytes at %d of a window of %d", syscall.EINVAL, q.Len, q.At, w.in.Bytes())
	}
	t := &transfer{
		r: v.registrar, client: v, strategy: v.registrar.opt.Strategy, file: f.file, stamp: f.stamp, served: f,
		from: q.Off, n: n,
		dst: w.in, at: uint64(q.At), several: &w.several, insists: v.insists.Load(),
	}
	err = t.run(ctx)
	v.count(&t.stats)
	if err != nil {
		return nil, &partial{t.stats.Bytes, sendError(err)}
	}
	return &wire.Moved{Bytes: n, Way: t.stats.Way}, nil
}

func (v *session) count(s *SendStats) {
	c := &v.counters
	switch s.Way {
	case ByRDMA:
		c.rdma.Add(s.Bytes)
	case ByMemory:
		c.shared.Add(s.Bytes)
	case ByTLS:
		c.tls.Add(s.Bytes)
	}
	c.copied.Add(s.CopiedBytes)
}

func (v *session) readInline(f *served, q *wire.Read) (wire.Message, error) {
	if q.Len > wire.MaxSmall {
		return nil, fmt.Errorf("%w: %d bytes in an answer", syscall.EINVAL, q.Len)
	}
	b := make([]byte, f.clamp(q.Off, q.Len))
	n, err := f.file.ReadAt(b, q.Off)
	if changed := f.unchanged(); changed != nil {
		return nil, changed
	}
	if n < len(b) {
		if err == io.EOF {
			err = ErrChanged // it has the length that it had
		}
		return nil, err
	}
	v.counters.small.Add(int64(n))
	return &wire.Moved{Bytes: int64(n), Content: b}, nil
}
