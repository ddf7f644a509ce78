package vmmc

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// tracker finds the pages of a node's memory that were written to, by this process or by the kernel for it.
type tracker struct {
	once    sync.Once
	fd      int // userfaultfd(2)
	pagemap *os.File
	err     error     // why it can't
	lacking sync.Once // to say so
}

// open makes the tracker work, if this kernel has what it needs.
func (t *tracker) open() error {
	t.once.Do(func() {
		if t.fd, t.err = uffd.Open(uffd.WPShared | uffd.WPUnpopulated | uffd.WPAsync); t.err != nil {
			return
		}
		if t.pagemap, t.err = os.Open("/proc/self/pagemap"); t.err != nil {
			unix.Close(t.fd)
		}
	})
	return t.err
}

func (t *tracker) close() error {
	t.once.Do(func() { t.err = errors.New("closed") })
	if t.err != nil {
		return nil
	}
	return errors.Join(unix.Close(t.fd), t.pagemap.Close())
}

// track begins with clean pages.
func (t *tracker) track(r mem.Range) error {
	if err := t.open(); err != nil {
		return err
	}
	err := uffd.Register(t.fd, r)
	if err == nil {
		if err = uffd.Protect(t.fd, r); err != nil {
			uffd.Unregister(t.fd, r)
		}
	}
	return err
}

func (t *tracker) untrack(r mem.Range) { uffd.Unregister(t.fd, r) }
