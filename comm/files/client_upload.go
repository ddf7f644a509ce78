package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

// CreateOptions are those of an upload.
type CreateOptions struct {
	Perm    fs.FileMode // 0 stands for 0o644; the umask of the server applies
	ModTime time.Time   // of the file; zero: the time of the Commit
	// NoReplace makes Commit fail with EEXIST if there is a file of that name.
	NoReplace bool
	// NoSync saves the fsync(2) before the file appears: it may be empty after a crash of the server's machine.
	NoSync bool
	// ID, if not empty, keeps what was written when the connection ends before the Commit. A Create of the same name
	// and ID goes on from there: see Upload.Size. It has at most 64 letters and digits. Choose one that the
	// source's name, size and modification time make, so that it changes with the source.
	ID string
	// Sum is the kind of the checksum that WriteFile has the server verify. Empty: NoSum.
	Sum Sum
}

const defaultPerm = 0o644

func (o *CreateOptions) message(name string) wire.Create {
	m := wire.Create{
		Name: name, Perm: uint32(o.Perm.Perm()), ModTime: wire.TimeOf(o.ModTime), NoReplace: o.NoReplace,
		NoSync: o.NoSync, ID: o.ID,
	}
	if m.Perm == 0 {
		m.Perm = defaultPerm
	}
	return m
}

// Upload is a file of a server that is being written. Nobody sees it before Commit. All methods are safe for
// concurrent use.
type Upload struct {
	client *Client
	name   string
	handle uint64
	size   int64
	over   atomic.Bool
}

// WriteFile writes a whole file of at most SmallBytes with one request: an upload as of Create, and its Commit. Many
// may be called at the same time.
func (c *Client) WriteFile(ctx context.Context, name string, content []byte, o CreateOptions) (Info, error) {
	const op = "write"
	if err := valid(op, name); err != nil {
		return Info{}, err
	}
	if len(content) > SmallBytes {
		return Info{}, &fs.PathError{Op: op, Path: name, Err: ErrNotSmall}
	}
	if o.Sum == "" {
		o.Sum = NoSum
	}
	q := wire.Put{Create: o.message(name), Content: content, Kind: string(o.Sum)}
	h, err := o.Sum.New()
	if err != nil {
		return Info{}, err
	}
	if h != nil {
		h.Write(content)
		q.Sum = h.Sum(nil)
	}
	var a wire.Info
	if _, err := c.call(ctx, wire.ProcPut, op, name, &q, &a); err != nil {
		return Info{}, err
	}
	c.written.Add(int64(len(content)))
	return infoOf(&a)
}

// Create begins an upload to a file, which appears, or is replaced, with Upload.Commit. Its directory must exist.
func (c *Client) Create(ctx context.Context, name string, o CreateOptions) (*Upload, error) {
	const op = "create"
	if err := valid(op, name); err != nil {
		return nil, err
	}
	if len(o.ID) > wire.MaxID {
		return nil, fmt.Errorf("files: an ID of %d bytes: at most %d are allowed", len(o.ID), wire.MaxID)
	}
	q := o.message(name)
	var a wire.Created
	if _, err := c.call(ctx, wire.ProcCreate, op, name, &q, &a); err != nil {
		return nil, err
	}
	return &Upload{client: c, name: name, handle: a.Handle, size: a.Size}, nil
}

// Size returns how many bytes the server had when the upload began: more than 0 only with CreateOptions.ID, after
// another attempt. They are those up to this offset without a gap.
func (u *Upload) Size() int64 { return u.size }

// stage is memory of the server into which this client sends what it uploads.
type stage struct {
	mu    sync.Mutex
	in    *vmmc.Import // nil before the first upload
	slots *slots
}

const stageSlots = 8 // blocks that are under way

// staging returns the memory, which it asks for when it is first needed.
func (c *Client) staging(ctx context.Context, name string) (*vmmc.Import, *slots, error) {
	s := &c.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in != nil {
		return s.in, s.slots, nil
	}
	if c.ctx.Err() != nil {
		return nil, nil, ErrClosed
	}
	var a wire.Window
	if _, err := c.call(ctx, wire.ProcStaging, "write", name, &wire.Empty{}, &a); err != nil {
		return nil, nil, err
	}
	in, err := c.importOf(ctx, a.Export)
	if err != nil {
		return nil, nil, err
	}
	if in.Bytes() != uint64(a.Bytes) || a.Bytes < stageSlots {
		in.Unimport()
		return nil, nil, fmt.Errorf("%w: staging memory of %d bytes", ErrProtocol, in.Bytes())
	}
	s.in, s.slots = in, newSlots(a.Bytes, stageSlots)
	return s.in, s.slots, nil
}

func (s *stage) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in != nil {
		s.in.Unimport()
	}
}

// writing is a block on its way.
type writing struct {
	n    int64
	done chan error // gets nil, or a *partial
}

// block begins to move n bytes of r from off to the same offset of the upload, through a slot of the staging memory,
// which it gives back.
func (u *Upload) block(r io.ReaderAt, in *vmmc.Import, s *slots, at, off, n int64) *writing {
	w := &writing{n, make(chan error, 1)}
	go func() {
		// It ends with the connection, not with the caller: until it has ended, the server may read from the slot.
		done, err := u.move(r, in, at, off, n)
		s.give(at)
		u.client.written.Add(done)
		if err != nil {
			err = &partial{done, err}
		}
		w.done <- err
	}()
	return w
}

// move sends a block, and has the server write it.
func (u *Upload) move(r io.ReaderAt, in *vmmc.Import, at, off, n int64) (int64, error) {
	c := u.client
	read := func(b []byte) (int, error) {
		k, err := r.ReadAt(b, off)
		if k == len(b) {
			err = nil
		}
		return k, short(err)
	}
	k, failed := in.Fill(uint64(at), uint64(n), read)
	if errors.Is(failed, vmmc.ErrNotShared) {
		b := make([]byte, n)
		if k, failed = read(b); k > 0 {
			if err := c.send(in, b[:k], uint64(at)); err != nil {
				return 0, err
			}
		}
	}
	if k == 0 {
		return 0, failed
	}
	var a wire.Moved
	q := wire.Write{Handle: u.handle, Off: off, Len: int64(k), At: at}
	done, err := c.call(c.ctx, wire.ProcWrite, "write", u.name, &q, &a)
	if err == nil {
		if done, err = a.Bytes, failed; done < int64(k) {
			err = fmt.Errorf("%w: %d bytes of %d", ErrProtocol, done, k)
		}
	}
	return min(done, n), err
}

// WriteAt writes p at an offset, and returns when the server has written it to its file, or else how much of it. It
// fails with the errno of that write, such as ENOSPC. If ctx ends first, p may be read for a moment longer.
func (u *Upload) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := u.CopyFrom(ctx, from{p, off}, off, int64(len(p)))
	return int(n), err
}

// from is memory that holds the bytes from an offset on.
type from struct {
	p   []byte
	off int64
}

func (f from) ReadAt(b []byte, off int64) (int, error) { return copy(b, f.p[off-f.off:]), nil }

// CopyFrom writes n bytes of r from an offset to the same offset of the upload, several blocks at a time. Over shared
// memory, r reads straight into memory of the server. It returns how many bytes from off are written without a gap,
// and fails with io.ErrUnexpectedEOF if r has fewer. If ctx ends first, r may be read for a moment longer.
func (u *Upload) CopyFrom(ctx context.Context, r io.ReaderAt, off, n int64) (copied int64, err error) {
	if u.over.Load() {
		return 0, &fs.PathError{Op: "write", Path: u.name, Err: ErrClosed}
	}
	if off < 0 || n < 0 || off+n < 0 {
		return 0, &fs.PathError{Op: "write", Path: u.name, Err: syscall.EINVAL}
	}
	if n == 0 {
		return 0, nil
	}
	in, slots, err := u.client.staging(ctx, u.name)
	if err != nil {
		return 0, err
	}
	var going []*writing
	next, end := off, off+n
	for copied < n {
		for next < end && len(going) < stageSlots {
			at, ok := slots.tryTake()
			if !ok && len(going) > 0 {
				break
			}
			if !ok {
				if at, err = slots.take(ctx, u.client.ctx); err != nil {
					return copied, err
				}
			}
			part := min(slots.bytes, end-next)
			going = append(going, u.block(r, in, slots, at, next, part))
			next += part
		}
		select {
		case err = <-going[0].done:
		case <-ctx.Done():
			return copied, context.Cause(ctx)
		}
		var p *partial
		if errors.As(err, &p) {
			return copied + p.bytes, p.err
		}
		copied += going[0].n
		going = going[1:]
	}
	return copied, nil
}

// Checksum returns the checksum of n bytes from an offset, as the server computes it: so a client can tell whether what
// an earlier attempt has left is what it would send.
func (u *Upload) Checksum(ctx context.Context, kind Sum, off, n int64) ([]byte, error) {
	return u.client.checksum(ctx, u.name, &wire.Range{Handle: u.handle, Kind: string(kind), Off: off, Len: n})
}

// Commit cuts the file to a size, verifies its checksum, synchronises it, and gives it its name. sum is ignored with
// NoSum. It fails with ErrChecksum, and then nothing has appeared; the upload goes on. If the disk fails, the upload is
// over: nobody knows which bytes it has.
func (u *Upload) Commit(ctx context.Context, size int64, kind Sum, sum []byte) (Info, error) {
	if u.over.Load() {
		return Info{}, &fs.PathError{Op: "commit", Path: u.name, Err: ErrClosed}
	}
	var a wire.Info
	q := wire.Commit{Handle: u.handle, Size: size, Kind: string(kind), Sum: sum}
	if _, err := u.client.call(ctx, wire.ProcCommit, "commit", u.name, &q, &a); err != nil {
		return Info{}, err
	}
	u.over.Store(true)
	return infoOf(&a)
}

// Abort removes what was written. After a Commit, Abort or Close it does nothing.
func (u *Upload) Abort(ctx context.Context) error {
	if u.over.Swap(true) {
		return nil
	}
	_, err := u.client.call(ctx, wire.ProcAbort, "abort", u.name, &wire.Handle{Handle: u.handle}, &wire.Empty{})
	return err
}

// Close ends an upload without its Commit: what was written stays for another attempt if the upload has an ID, and is
// removed otherwise. After a Commit or Abort it does nothing.
func (u *Upload) Close() error {
	if !u.over.Swap(true) {
		u.client.closeHandle(u.handle)
	}
	return nil
}
