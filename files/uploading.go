package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/files/internal/wire"
)

// uploading is a file that a client writes. It has a hidden name beside the one that it gets with its commit.
type uploading struct {
	root   *os.Root
	file   *os.File
	hidden string
	order  wire.Create
	size   int64 // that was there

	// using is held for reading while bytes are written, and for writing while the upload ends. It protects over.
	using sync.RWMutex
	over  bool // it was committed, removed or closed
}

// resumeUnit is what an upload that goes on begins at a multiple of: a write that was cut off may have left less than
// that behind.
const resumeUnit = 1 << 20 // 1 MiB

// newUploading begins an upload, or goes on with one that has the same ID.
func newUploading(root *os.Root, q *wire.Create) (*uploading, error) {
	dir, base := path.Split(q.Name)
	var random [16]byte
	flags := os.O_RDWR | os.O_CREATE
	if q.ID == "" {
		rand.Read(random[:])
		flags |= os.O_EXCL
	} else {
		of := sha256.Sum256([]byte(q.ID + "\n" + base))
		copy(random[:], of[:])
	}
	u := &uploading{root: root, hidden: dir + hidden + hex.EncodeToString(random[:]), order: *q}
	var err error
	// With its permissions from the beginning, as chmod(2) knows no umask; writable, as it may have to be opened again.
	if u.file, err = root.OpenFile(u.hidden, flags|unix.O_NOFOLLOW, fs.FileMode(q.Perm).Perm()|0o200); err != nil {
		return nil, rootError(err)
	}
	if q.ID != "" {
		err = u.resume()
	}
	if err != nil {
		return nil, errors.Join(err, u.file.Close())
	}
	return u, nil
}

// resume finds how much is there. Two clients can't write the same upload.
func (u *uploading) resume() error {
	c, err := u.file.SyscallConn()
	if err != nil {
		return err
	}
	e := c.Control(func(fd uintptr) {
		if err = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			err = fmt.Errorf("%w: somebody writes this upload (%w)", syscall.EBUSY, err)
			return
		}
		// Blocks are written in any order: all before the first hole is there.
		u.size, err = unix.Seek(int(fd), 0, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) { // it is empty
			u.size, err = 0, nil
		}
	})
	u.size -= u.size % resumeUnit
	return errors.Join(err, e)
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

// end has f end an upload that is not over, and then closes it.
func (u *uploading) end(f func() error) error {
	u.using.Lock()
	defer u.using.Unlock()
	if u.over {
		return errHandle
	}
	if err := f(); err != nil {
		return err
	}
	u.over = true
	return u.file.Close()
}

// close ends an upload whose client is gone. One with an ID stays.
func (u *uploading) close() {
	_ = u.end(func() error { // it fails if it is over
		if u.order.ID == "" {
			_ = u.root.Remove(u.hidden) // it fails for a directory that is gone
		}
		return nil
	})
}

func (u *uploading) remove() error {
	return u.end(func() error { return rootError(u.root.Remove(u.hidden)) })
}

// commit makes the upload the file of its name.
func (u *uploading) commit(ctx context.Context, q *wire.Commit, progress func()) (info Info, err error) {
	err = u.end(func() error {
		if err := u.file.Truncate(q.Size); err != nil {
			return err
		}
		sum, err := sumOf(ctx, u.file, Sum(q.Kind), 0, q.Size, progress)
		if err != nil {
			return err
		}
		if !bytes.Equal(sum, q.Sum) && Sum(q.Kind) != NoSum {
			return ErrChecksum
		}
		if !u.order.NoSync {
			if err := u.file.Sync(); err != nil {
				return err
			}
		}
		if u.order.Perm&0o200 == 0 {
			s, err := stampOf(u.file)
			if err == nil {
				err = u.file.Chmod(s.mode.Perm() &^ 0o200)
			}
			if err != nil {
				return err
			}
		}
		if u.order.ModNs != 0 {
			at := time.Unix(0, u.order.ModNs)
			if err := u.root.Chtimes(u.hidden, at, at); err != nil {
				return rootError(err)
			}
		}
		if err := u.rename(); err != nil {
			return rootError(err)
		}
		s, err := stampOf(u.file)
		info = s.info(path.Base(u.order.Name))
		return err
	})
	return info, err
}

// rename gives the upload its name.
func (u *uploading) rename() error {
	if !u.order.NoReplace {
		if err := u.root.Rename(u.hidden, u.order.Name); err != nil {
			return err
		}
	} else {
		// link(2) replaces nothing, unlike rename(2).
		if err := u.root.Link(u.hidden, u.order.Name); err != nil {
			return err
		}
		if err := u.root.Remove(u.hidden); err != nil {
			return err
		}
	}
	if u.order.NoSync {
		return nil
	}
	dir, err := u.root.Open(path.Dir(u.order.Name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
