package files

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
)

// listing is a directory that a client lists.
type listing struct {
	file *os.File
	mu   sync.Mutex // held while a page is read
}

func (l *listing) close() { _ = l.file.Close() } // nothing was written

// list answers with the first page of a directory, or the next one. Symbolic links are described, not followed.
func (v *session) list(_ context.Context, q *wire.List) (wire.Message, error) {
	if q.Handle != 0 {
		l, err := find[*listing](&v.handles, q.Handle)
		if err != nil {
			return nil, err
		}
		page, more, err := l.page()
		if page.Handle = q.Handle; err == nil && !more {
			page.Handle = 0
			if _, err := v.handles.take(q.Handle); err == nil { // else the client has closed it meanwhile
				l.close()
			}
		}
		return page, err
	}
	l, err := v.openListing(q.Name)
	if err != nil {
		return nil, err
	}
	page, more, err := l.page()
	if err != nil || !more {
		l.close()
		return page, err
	}
	page.Handle, err = v.handles.add(l)
	return page, err
}

func (v *session) openListing(name string) (*listing, error) {
	if err := v.allowed(Read, name); err != nil {
		return nil, err
	}
	f, s, err := v.openFile(name)
	if err == nil && !s.mode.IsDir() {
		err = errors.Join(syscall.ENOTDIR, f.Close())
	}
	if err != nil {
		return nil, err
	}
	return &listing{file: f}, nil
}

// page returns the entries that come next, and tells whether there may be more.
func (l *listing) page() (page *wire.Page, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page = &wire.Page{}
	for more = true; more && len(page.Entries) == 0; {
		names, err := l.file.Readdirnames(wire.MaxPage)
		if err != nil && !errors.Is(err, io.EOF) {
			return page, false, err
		}
		more = len(names) == wire.MaxPage
		if page.Entries, err = l.describe(names); err != nil {
			return page, false, err
		}
	}
	return page, more, nil
}

// describe describes entries by their names; those that are gone, or hidden, are left out.
func (l *listing) describe(names []string) (entries []wire.Info, err error) {
	c, err := l.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := c.Control(func(fd uintptr) {
		for _, name := range names {
			var st unix.Stat_t
			if checkName(name) != nil || unix.Fstatat(int(fd), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			s := makeStamp(&syscall.Stat_t{
				Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode, Blocks: st.Blocks,
				Mtim: syscall.Timespec(st.Mtim), Ctim: syscall.Timespec(st.Ctim),
			})
			entries = append(entries, *message(s.info(name)))
		}
	})
	return entries, e
}
