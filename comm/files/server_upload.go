package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/wire"
)

// uploading is a file that a client writes. It has no name before its commit, or a hidden one beside that which it gets:
// for another connection to go on with it, or where files can't be without.
type uploading struct {
	of     *newfile.Group // makes small files durable
	dir    newfile.File
	file   newfile.File
	hidden string // empty: it has no name
	order  wire.Create
	size   int64 // that was there

	// using is held for reading while bytes are written, and for writing while the upload ends. It protects over.
	using sync.RWMutex
	over  bool // it was committed, removed or closed
}

// resumeUnit is what an upload that goes on begins at a multiple of: a write that was cut off may have left less than
// that behind.
const resumeUnit = 1 << 20 // 1 MiB

// toReopen are the permissions without which the user of the server can't go on with an upload.
const toReopen fs.FileMode = 0o600

// newUploading begins an upload, or goes on with one that has the same ID.
func (s *Server) newUploading(q *wire.Create) (*uploading, error) {
	f, err := s.root.OpenFile(path.Dir(q.Name), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, rootError(err)
	}
	u := &uploading{of: &s.durable, order: *q}
	at, err := stampOf(f)
	if u.dir = newfile.Opened(f, at.dev); err == nil {
		_, err = u.replaceable()
	}
	if err == nil {
		s.sweeper.sweep(f, at.fileKey)
		// With its permissions from the beginning, as chmod(2) knows no umask; and with those to open it again.
		perm := fs.FileMode(q.Perm).Perm() | toReopen
		if q.ID == "" {
			err = u.create(perm)
		} else {
			err = u.resume(perm)
		}
	}
	if errors.Is(err, newfile.ErrInTheWay) { // clients know nothing of hidden names
		s.warn("%q: %v", path.Dir(q.Name), err)
		err = fmt.Errorf("%w: %w", syscall.EEXIST, err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return u, nil
}

// replaceable fails if the upload must not take the place of what has its name. there tells whether something has it.
func (u *uploading) replaceable() (there bool, err error) {
	if u.order.NoReplace {
		return false, nil // nothing is replaced: the commit fails with EEXIST
	}
	return newfile.Replaceable(u.in(), u.base())
}

func (u *uploading) in() int      { return int(u.dir.Fd()) }
func (u *uploading) base() string { return path.Base(u.order.Name) }

// create begins an upload that ends with its connection.
func (u *uploading) create(perm fs.FileMode) error {
	f, err := newfile.Create(u.dir.File, perm)
	if errors.Is(err, errors.ErrUnsupported) {
		u.hidden = newHidden()
		f, err = newfile.Continue(u.dir.File, u.hidden, perm, func(f *os.File) error {
			_ = lock(f) // where there are no locks, there are none for those who sweep either
			return nil
		})
	}
	if err == nil {
		u.file = newfile.Opened(f, u.dir.Device())
	}
	return err
}

// lock says that somebody writes an upload, for as long as its file is open.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: somebody writes this upload", syscall.EBUSY)
	}
	return os.NewSyscallError("flock", err)
}

// resume begins an upload that stays when its connection ends, or goes on with one. Two clients can't write the same.
func (u *uploading) resume(perm fs.FileMode) error {
	u.hidden = hiddenOf(u.base(), u.order.ID)
	f, err := newfile.Continue(u.dir.File, u.hidden, perm, lock)
	if err != nil {
		return err
	}
	u.file = newfile.Opened(f, u.dir.Device())
	if err := u.findSize(); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// findSize finds how much is there. Blocks are written in any order: all before the first hole is there.
func (u *uploading) findSize() (err error) {
	u.size, err = unix.Seek(int(u.file.Fd()), 0, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) { // it is empty
		u.size, err = 0, nil
	}
	u.size -= u.size % resumeUnit
	return os.NewSyscallError("lseek", err)
}

// write writes bytes of the upload.
func (u *uploading) write(b []byte, off int64) (int, error) {
	u.using.RLock()
	defer u.using.RUnlock()
	if u.over {
		return 0, errHandle
	}
	return u.file.WriteAt(b, off)
}

// end has f end an upload that is not over. If f fails, the upload goes on, unless f says that it is over.
func (u *uploading) end(f func() error) error {
	u.using.Lock()
	defer u.using.Unlock()
	if u.over {
		return errHandle
	}
	err := f()
	if err != nil && !u.over {
		return err
	}
	u.over = true
	_ = u.dir.Close() // nothing was written
	return errors.Join(err, u.file.Close())
}

// close ends an upload whose client is gone. One with an ID stays.
func (u *uploading) close() {
	_ = u.end(func() error { // it fails if it is over
		if u.order.ID == "" {
			_ = u.unlink() // it fails for a directory that is gone
		}
		return nil
	})
}

// remove ends an upload and removes what there is of it.
func (u *uploading) remove() error { return u.end(u.discard) }

// unlink takes the hidden name away.
func (u *uploading) unlink() error {
	if u.hidden == "" {
		return nil
	}
	return os.NewSyscallError("unlinkat", unix.Unlinkat(u.in(), u.hidden, 0))
}

// discard ends an upload of which nothing may stay, for whoever holds using.
func (u *uploading) discard() error {
	u.over = true
	return u.unlink()
}

// fsync is replaced by tests: no disk fails when it is told to.
var fsync = (*os.File).Sync

// commit makes the upload the file of its name, for a session that checks what it has.
func (u *uploading) commit(ctx context.Context, q *wire.Commit, by *session) (info Info, err error) {
	err = u.end(func() error {
		if err := u.complete(ctx, q, by); err != nil {
			return err
		}
		// Linux tells one descriptor of a block that was lost, once, and its page cache still has the bytes: another
		// attempt would find them all there, and this name durable.
		if err := u.sync(u.file, q.Size); err != nil {
			return errors.Join(err, u.discard())
		}
		if err := u.rename(); err != nil {
			return err
		}
		if err := u.sync(u.dir, q.Size); err != nil {
			return err
		}
		s, err := stampOf(u.file.File)
		info = s.info(u.base())
		return err
	})
	return info, err
}

// complete gives the upload its size, mode and time, if it has the right checksum.
func (u *uploading) complete(ctx context.Context, q *wire.Commit, by *session) error {
	if err := u.file.Truncate(q.Size); err != nil {
		return err
	}
	sum, err := by.sumOf(ctx, u.file.File, Sum(q.Kind), 0, q.Size)
	if err != nil {
		return err
	}
	if !bytes.Equal(sum, q.Sum) && Sum(q.Kind) != NoSum {
		return ErrChecksum
	}
	if extra := toReopen &^ fs.FileMode(u.order.Perm); extra != 0 {
		s, err := stampOf(u.file.File)
		if err == nil {
			err = u.file.Chmod(s.mode.Perm() &^ extra)
		}
		if err != nil {
			return err
		}
	}
	return newfile.SetModTime(u.file.File, u.order.ModTime.Time())
}

// sync makes the file, or its name, durable. Small ones wait for each other, but not for large ones.
func (u *uploading) sync(f newfile.File, size int64) error {
	switch {
	case u.order.NoSync:
		return nil
	case size > SmallBytes:
		return fsync(f.File)
	}
	return u.of.Sync(f)
}

// rename gives the upload its name. From then on nobody writes to it, whatever fails.
func (u *uploading) rename() error {
	there, err := u.replaceable()
	if err != nil {
		return err
	}
	dir, name := u.in(), u.base()
	switch {
	case u.hidden == "" && u.order.NoReplace:
		err = newfile.Link(u.file.File, u.dir.File, name)
	case u.hidden == "":
		err = newfile.Replace(u.file.File, u.dir.File, name, there, newHidden)
	case u.order.NoReplace:
		err = unix.Linkat(dir, u.hidden, dir, name, 0) // it replaces nothing, unlike rename(2)
	default:
		err = unix.Renameat(dir, u.hidden, dir, name)
	}
	if err != nil {
		return os.NewSyscallError("rename", err)
	}
	u.over = true
	if u.order.NoReplace {
		err = u.unlink()
	}
	return err
}
