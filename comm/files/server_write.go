package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

// staging is memory into which one client sends what it uploads.
type staging struct {
	id     uint32
	memory []byte
	export *vmmc.Export
}

// stagingBytes is how much of uploads a client may have on its way.
const stagingBytes = 4 << 20 // 4 MiB

// firstWindow is the least number of an export of this package: services have those below.
const firstWindow = 1 << 31

// export makes memory of a node an export with a number that it chooses.
func export(n *vmmc.Node, bytes int64, p vmmc.Permissions) (id uint32, memory []byte, e *vmmc.Export, err error) {
	if memory, err = n.Alloc(uint64(bytes)); err != nil {
		return 0, nil, nil, err
	}
	p.MaxImporters = 1
	for {
		id = rand.Uint32() | firstWindow
		if e, err = n.Export(id, memory, p, vmmc.ExportOptions{}); !errors.Is(err, vmmc.ErrExported) {
			break
		}
	}
	if err != nil {
		return 0, nil, nil, errors.Join(err, n.Free(memory))
	}
	return id, memory, e, nil
}

// unexport ends an export, and frees its memory. It fails for a node that was closed, which has done both.
func unexport(n *vmmc.Node, memory []byte, e *vmmc.Export) error {
	err := e.Unexport(context.Background()) // bounded by vmmc.Options.RevokeTimeout
	if err == nil {
		err = n.Free(memory)
	}
	if errors.Is(err, vmmc.ErrNotExported) || errors.Is(err, vmmc.ErrClosed) {
		return nil
	}
	return err
}

// stage answers with the staging memory of the client, which it makes when it is first needed.
func (v *session) stage(context.Context, *wire.Empty) (wire.Message, error) {
	if !v.opt.AllowWrite {
		return nil, syscall.EROFS
	}
	s := &v.staging
	s.Lock()
	defer s.Unlock()
	if s.of == nil {
		id, memory, e, err := export(v.node, stagingBytes, vmmc.Permissions{Peers: []string{v.peer}})
		if err != nil {
			return nil, err
		}
		s.of = &staging{id, memory, e}
	}
	return &wire.Window{Export: s.of.id, Bytes: int64(len(s.of.memory))}, nil
}

// endStaging frees the staging memory. No request is under way.
func (v *session) endStaging() {
	s := &v.staging
	s.Lock()
	defer s.Unlock()
	if s.of == nil {
		return
	}
	if err := unexport(v.node, s.of.memory, s.of.export); err != nil {
		v.warn("the staging memory of %q: %v", v.peer, err)
	}
	s.of = nil
}

func (v *session) mkdir(_ context.Context, q *wire.Create) (wire.Message, error) {
	if err := v.allowed(Write, q.Name); err != nil {
		return nil, err
	}
	_, err := v.root.Lstat(q.Name)
	made := errors.Is(err, fs.ErrNotExist)
	return &wire.Made{New: made}, rootError(v.root.MkdirAll(q.Name, fs.FileMode(q.Perm).Perm()))
}

// setAttr changes a directory.
func (v *session) setAttr(_ context.Context, q *wire.SetAttr) (wire.Message, error) {
	if err := v.allowed(Write, q.Name); err != nil {
		return nil, err
	}
	dir, err := v.root.OpenFile(q.Name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, rootError(err)
	}
	defer dir.Close() // nothing was written
	if err := newfile.SetModTime(dir, q.ModTime.Time()); err != nil {
		return nil, err
	}
	have, err := stampOf(dir)
	if err != nil {
		return nil, err
	}
	if keep := fs.FileMode(q.Keep).Perm(); have.mode&fs.ModePerm&^keep != 0 {
		err = dir.Chmod(have.mode.Perm() & keep)
	}
	return &wire.Empty{}, err
}

// begin begins an upload.
func (v *session) begin(q *wire.Create) (*uploading, error) {
	if err := v.allowed(Write, q.Name); err != nil {
		return nil, err
	}
	notInID := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
	if q.Name == "." || strings.ContainsFunc(q.ID, notInID) {
		return nil, syscall.EINVAL
	}
	return v.newUploading(q)
}

func (v *session) create(_ context.Context, q *wire.Create) (wire.Message, error) {
	u, err := v.begin(q)
	if err != nil {
		return nil, err
	}
	h, err := v.handles.add(u)
	return &wire.Created{Handle: h, Size: u.size}, err
}

// put is an upload that has all its bytes with it.
func (v *session) put(ctx context.Context, q *wire.Put) (wire.Message, error) {
	q.Create.ID = ""
	u, err := v.begin(&q.Create)
	if err != nil {
		return nil, err
	}
	defer u.close()
	if _, err := u.write(q.Content, 0); err != nil {
		return nil, err
	}
	v.counters.received.Add(int64(len(q.Content)))
	info, err := u.commit(ctx, &wire.Commit{Size: int64(len(q.Content)), Kind: q.Kind, Sum: q.Sum}, v)
	return message(info), err
}

// write moves bytes from the staging memory into an upload.
func (v *session) write(_ context.Context, q *wire.Write) (wire.Message, error) {
	u, err := find[*uploading](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	v.staging.Lock()
	s := v.staging.of
	v.staging.Unlock()
	if s == nil || q.At > int64(len(s.memory)) || q.Len > int64(len(s.memory))-q.At {
		return nil, fmt.Errorf("%w: %d bytes at %d of the staging memory", syscall.EINVAL, q.Len, q.At)
	}
	if q.Off+q.Len < 0 {
		return nil, syscall.EFBIG
	}
	n, err := u.write(s.memory[q.At:][:q.Len], q.Off)
	v.counters.received.Add(int64(n))
	if err != nil {
		return nil, &partial{int64(n), err}
	}
	return &wire.Moved{Bytes: int64(n)}, nil
}

func (v *session) commit(ctx context.Context, q *wire.Commit) (wire.Message, error) {
	u, err := find[*uploading](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	info, err := u.commit(ctx, q, v)
	if err != nil {
		return nil, err
	}
	_, _ = v.handles.take(q.Handle) // it fails if the client has closed it meanwhile
	return message(info), nil
}

// abort removes an upload.
func (v *session) abort(_ context.Context, q *wire.Handle) (wire.Message, error) {
	u, err := find[*uploading](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	_, _ = v.handles.take(q.Handle) // it fails if the client has closed it meanwhile
	// A commit that has failed for good has left nothing to remove.
	if err = u.remove(); errors.Is(err, errHandle) {
		err = nil
	}
	return &wire.Empty{}, err
}
