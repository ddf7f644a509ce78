package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/vmmc"
)

// much is more than is on its way at a time, by any transport.
const much = 48 << 20 // 48 MiB

// changes are those of a file that is being served.
var changes = map[string]func(path string) error{
	"truncated": func(path string) error { return os.Truncate(path, 5) },
	"replaced": func(path string) error {
		return errors.Join(os.WriteFile(path+".new", []byte("new"), 0o644), os.Rename(path+".new", path))
	},
	"overwritten": func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("new"), much-100)
		return errors.Join(err, f.Close())
	},
	"punched": func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, much)
		return errors.Join(err, f.Close())
	},
	"grown":   func(path string) error { return os.Truncate(path, much+1) },
	"removed": os.Remove,
}

func TestChangeOfAServedFileIsNoticed(t *testing.T) {
	overEachQuietly(t, func(t *testing.T, w *world) {
		c := w.client()
		for what, change := range changes {
			path := w.sparse("f", much)
			f := open(t, c, "f")
			changed := false
			n, err := f.CopyRange(testContext(t), writer(func([]byte) error {
				if changed {
					return nil
				}
				changed = true
				return change(path)
			}), 0, much)
			if !errors.Is(err, ErrChanged) || n >= much && !w.trusted { // the kernel may have all in its buffers
				t.Errorf("%s: %d bytes, %v", what, n, err)
			}
			if _, err := f.ReadAt(testContext(t), make([]byte, 10), 0); !errors.Is(err, ErrChanged) {
				t.Errorf("%s, then: %v", what, err)
			}
			if what != "removed" { // who opens it again gets what is there now
				f = open(t, c, "f")
				want := w.content("f")
				for _, at := range []int{0, max(len(want)-1000, 0)} {
					got := make([]byte, min(1000, len(want)))
					if _, err := f.ReadAt(testContext(t), got, int64(at)); err != nil {
						t.Errorf("%s, opened again: %v", what, err)
					}
					same(t, what, got, want[at:][:len(got)])
				}
			}
		}
		if st := w.server.Stats(); st.Changed == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// overEachQuietly is overEach for tests in which nodes have to warn of what happens.
func overEachQuietly(t *testing.T, f func(t *testing.T, w *world)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			node := w.node
			w.node = func(t testing.TB, name string) vmmc.Options { return withWarn(node(t, name)) }
			f(t, w.serve(t, ServerOptions{}))
		})
	}
}

// In this process, which would die of a SIGBUS. A device that reads the mapping when it sends, as the software device
// does, finds pages gone that were registered: its connection goes on without RDMA for a while.
func TestServerSurvivesFilesThatShrinkAllTheTime(t *testing.T) {
	overEachQuietly(t, func(t *testing.T, w *world) {
		path := w.sparse("f", 8<<20)
		ctx, cancel := context.WithCancel(testContext(t))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; ctx.Err() == nil; i++ {
				_ = os.Truncate(path, int64(i%9)<<20)
			}
		}()
		c := w.client()
		for range 50 {
			f := open(t, c, "f")
			n, err := f.CopyRange(testContext(t), io.Discard, 0, f.Info().Size())
			if err != nil && !errors.Is(err, ErrChanged) || err == nil && n != f.Info().Size() {
				t.Errorf("%d of %d bytes, %v", n, f.Info().Size(), err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		<-ended
		w.sparse("g", 1<<20)
		if n, err := open(t, c, "g").CopyRange(testContext(t), io.Discard, 0, 1<<20); n != 1<<20 || err != nil {
			t.Error(n, err)
		}
	})
}

// Pages of a mapping may be missing though the file is not: here there is no room for those of a hole. It is read then.
func TestFileThatCantBeMappedIsRead(t *testing.T) {
	const size = 8 << 20
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs: %v (needs CAP_SYS_ADMIN)", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			testwait.Bound(t)
			w := way.serveDir(t, dir, ServerOptions{})
			w.sparse("f", size)
			if err := os.WriteFile(filepath.Join(dir, "filler"), random(2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("there is room: %v", err)
			}
			c := w.client()
			var got bytes.Buffer
			if n, err := open(t, c, "f").CopyRange(testContext(t), &got, 0, size); n != size || err != nil {
				t.Fatalf("%d bytes by %s, %v", n, c.Transport(), err)
			}
			same(t, "f", got.Bytes(), make([]byte, size))
		})
	}
}

func TestClosedEndsAreToldSo(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		w.sparse("f", much)
		c := w.client()
		f := open(t, c, "f")
		var closed atomic.Bool
		_, err := f.CopyRange(testContext(t), writer(func([]byte) error {
			if !closed.Swap(true) {
				go c.Close() // it waits until the window is not looked into
			}
			return nil
		}), 0, much)
		testwait.Until(t, "the client is closed", func() bool { return c.ctx.Err() != nil })
		if err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := c.Stat(testContext(t), "f"); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		c = w.client()
		f = open(t, c, "f")
		_, err = f.CopyRange(testContext(t), writer(func([]byte) error { return w.server.Close() }), 0, much)
		if !errors.Is(err, ErrPeerGone) {
			t.Error(err)
		}
		if _, err := c.Stat(testContext(t), "f"); !errors.Is(err, ErrPeerGone) {
			t.Error(err)
		}
	})
}

// A client that takes nothing holds up nobody, and no memory.
func TestSlowClient(t *testing.T) {
	overEach(t, ServerOptions{BudgetBytes: 8 << 20}, func(t *testing.T, w *world) {
		w.sparse("f", much)
		slow, quick := w.client(), w.client()
		hold, held := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 1)
		f := open(t, slow, "f")
		go func() {
			first := true
			_, err := f.CopyRange(testContext(t), writer(func([]byte) error {
				if first {
					close(held)
					<-hold
				}
				first = false
				return nil
			}), 0, much)
			ended <- err
		}()
		testwait.Receive(t, "the first bytes", held)
		for range 3 {
			if n, err := open(t, quick, "f").CopyRange(testContext(t), io.Discard, 0, 32<<20); n != 32<<20 || err != nil {
				t.Error(n, err)
			}
		}
		close(hold)
		if err := testwait.Receive(t, "the end of the slow client", ended); err != nil {
			t.Error(err)
		}
	})
}
