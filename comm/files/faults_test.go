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

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
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

// What a client gets before it hears of a change is of the file as it was, or as it is then; nothing in between, and no
// other place of it.
func TestChangeOfAServedFileIsNoticed(t *testing.T) {
	testwait.SkipUnderRace(t, "TestChangesAreNoticedThroughADescriptor has changes, too")
	old := random(much)
	overEachQuietly(t, func(t *testing.T, w *world) {
		c := w.client()
		path := filepath.Join(w.dir, "f")
		for what, change := range changes {
			w.write("f", old)
			settle(t, path)
			f := open(t, c, "f")
			var now []byte // nil: as it was
			at := 0
			n, err := f.CopyRange(testContext(t), writer(func(p []byte) error {
				was := old[at:][:len(p)]
				if !bytes.Equal(p, was) && (now == nil || !either(p, was, now[at:][:len(p)])) {
					t.Errorf("%s: bytes at %d are of neither file", what, at)
				}
				at += len(p)
				if now != nil {
					return nil
				}
				err := change(path)
				now = make([]byte, much) // zeros where there is no file any more
				if what != "removed" {
					copy(now, w.content("f"))
				}
				return err
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
				got := make([]byte, len(want))
				if _, err := f.ReadAt(testContext(t), got, 0); err != nil {
					t.Errorf("%s, opened again: %v", what, err)
				}
				same(t, what, got, want)
			}
		}
		if st := w.server.Stats(); st.Changed == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// either tells whether each byte is that of one of two contents.
func either(p, one, other []byte) bool {
	for len(p) > 0 {
		n := min(len(p), 4096)
		if !bytes.Equal(p[:n], one[:n]) && !bytes.Equal(p[:n], other[:n]) { // mixed, or wrong: the race detector makes it slow
			for i, b := range p[:n] {
				if b != one[i] && b != other[i] {
					return false
				}
			}
		}
		p, one, other = p[n:], one[n:], other[n:]
	}
	return true
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

// A client that takes nothing holds up nobody, and no memory: what it has asked for is in its window.
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
		r := w.server.registrar
		testwait.Until(t, "nothing is held for the slow client", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.turns.Used() == 0 && r.turns.Active() == 0
		}, func() any { return w.server.Stats() })
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
