package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

var writable = ServerOptions{AllowWrite: true}

func create(t testing.TB, c *Client, name string, o CreateOptions) *Upload {
	t.Helper()
	u, err := c.Create(testContext(t), name, o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func sum(t testing.TB, kind Sum, b []byte) []byte {
	t.Helper()
	h, err := kind.New()
	if err != nil {
		t.Fatal(err)
	}
	h.Write(b)
	return h.Sum(nil)
}

func TestUploadsAppearWhole(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		c := w.client()
		if !c.Writable() {
			t.Error("the server says that it is read-only")
		}
		at := time.Unix(1_000_000_000, 5)
		for _, n := range sizes {
			w.write("f", []byte("old"))
			want := random(n)
			u := create(t, c, "f", CreateOptions{Perm: 0o600, ModTime: at})
			if k, err := u.CopyFrom(testContext(t), bytes.NewReader(want), 0, int64(n)); k != int64(n) || err != nil {
				t.Fatalf("%d of %d bytes, %v", k, n, err)
			}
			same(t, "before the commit", w.content("f"), []byte("old"))
			i, err := u.Commit(testContext(t), int64(n), SHA256, sum(t, SHA256, want))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "after the commit", w.content("f"), want)
			if i.Size() != int64(n) || i.Mode() != 0o600 || !i.ModTime().Equal(at) || i.Name() != "f" {
				t.Error(i)
			}
			if again, err := c.Stat(testContext(t), "f"); err != nil || again != i {
				t.Errorf("%v, %v", again, err)
			}
			if err := u.Abort(testContext(t)); err != nil {
				t.Error(err)
			}
		}
		if left := w.temporary(); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestSmallFilesAreWrittenAtOnce(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		c := w.client()
		if _, err := c.Mkdir(testContext(t), "a/b", 0o755); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		const writers = 40
		for i := range writers {
			go func() {
				o := CreateOptions{NoSync: true, Sum: CRC32C, Perm: 0o444}
				_, err := c.WriteFile(testContext(t), fmt.Sprintf("a/b/%d", i), bytes.Repeat([]byte{byte(i)}, i*50), o)
				ended <- err
			}()
		}
		for range writers {
			if err := testwait.Receive(t, "the end of a write", ended); err != nil {
				t.Error(err)
			}
		}
		for i := range writers {
			same(t, "a file", w.content(fmt.Sprintf("a/b/%d", i)), bytes.Repeat([]byte{byte(i)}, i*50))
		}
		if i, err := c.Stat(testContext(t), "a/b/7"); err != nil || i.Mode() != 0o444 {
			t.Error(i, err)
		}
		_, err := c.WriteFile(testContext(t), "x", make([]byte, SmallBytes+1), CreateOptions{})
		if !errors.Is(err, ErrNotSmall) {
			t.Error(err)
		}
		if _, err := c.WriteFile(testContext(t), "none/x", nil, CreateOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestWrongChecksumAppearsNowhere(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	u := create(t, c, "f", CreateOptions{})
	b := random(100)
	if n, err := u.WriteAt(testContext(t), b, 0); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	for _, kind := range []Sum{CRC32C, SHA256} {
		if _, err := u.Commit(testContext(t), 99, kind, sum(t, kind, b)); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it has appeared")
	}
	// The upload goes on: what the commit has cut off is written again.
	if _, err := u.WriteAt(testContext(t), b[50:], 50); err != nil {
		t.Error(err)
	}
	if got, err := u.Checksum(testContext(t), CRC32C, 50, 50); err != nil || !bytes.Equal(got, sum(t, CRC32C, b[50:])) {
		t.Errorf("%x, %v", got, err)
	}
	if _, err := u.Commit(testContext(t), 100, CRC32C, sum(t, CRC32C, b)); err != nil {
		t.Error(err)
	}
	same(t, "the file", w.content("f"), b)
	if _, err := u.WriteAt(testContext(t), b, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("a write after the commit: %v", err)
	}
}

func TestNoReplaceKeepsWhatIsThere(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	w.write("f", []byte("old"))
	o := CreateOptions{NoReplace: true}
	if _, err := c.WriteFile(testContext(t), "f", []byte("new"), o); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	same(t, "the file", w.content("f"), []byte("old"))
	if _, err := c.WriteFile(testContext(t), "g", []byte("new"), o); err != nil {
		t.Error(err)
	}
	if left := w.temporary(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The server replaces nothing that people write into. For NoReplace, that is something like any other.
func TestNoReplaceFailsForADeviceAsForAFile(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	fifo := filepath.Join(w.dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	o := CreateOptions{NoReplace: true}
	if _, err := c.WriteFile(testContext(t), "fifo", []byte("new"), o); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("a small file: %v", err)
	}
	u := create(t, c, "fifo", o)
	if _, err := u.Commit(testContext(t), 0, NoSum, nil); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("commit: %v", err)
	}
	if i, err := os.Lstat(fifo); err != nil || i.Mode().Type() != fs.ModeNamedPipe {
		t.Error(i, err)
	}
	if err := u.Abort(testContext(t)); err != nil || len(w.temporary()) > 0 {
		t.Error(err, w.temporary())
	}
}

func TestUploadGoesOnAfterItsConnection(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		want := random(5 << 20)
		o := CreateOptions{ID: "abc123"}
		first := w.client()
		u := create(t, first, "f", o)
		if _, err := u.CopyFrom(testContext(t), bytes.NewReader(want[:3<<20+5]), 0, 3<<20+5); err != nil {
			t.Fatal(err)
		}
		// A block behind a gap is not there for those who go on.
		if _, err := u.WriteAt(testContext(t), want[4<<20:], 4<<20); err != nil {
			t.Fatal(err)
		}
		c := w.client()
		if _, err := c.Create(testContext(t), "f", o); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("two write one upload: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		testwait.Until(t, "the end of the first client", func() bool { return w.server.Stats().Clients == 1 })
		u = create(t, c, "f", o)
		at := u.Size()
		if at == 0 || at > 3<<20+5 {
			t.Fatalf("it goes on at %d", at)
		}
		if _, err := u.CopyFrom(testContext(t), bytes.NewReader(want), at, int64(len(want))-at); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Commit(testContext(t), int64(len(want)), SHA256, sum(t, SHA256, want)); err != nil {
			t.Error(err)
		}
		same(t, "the file", w.content("f"), want)
		if left := w.temporary(); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// A server that is not root needs permissions to open its unfinished file again that the file is not to have. Those of
// the file are looked at, as root needs none.
func TestUploadIsOpenToItsServerUntilTheCommit(t *testing.T) {
	for _, perm := range []fs.FileMode{0o044, 0o444, 0o244} {
		t.Run(perm.String(), func(t *testing.T) {
			w := ways[0].serve(t, writable)
			o := CreateOptions{ID: "abc123", Perm: perm}
			first := w.client()
			create(t, first, "f", o)
			left := w.temporary()
			if len(left) != 1 {
				t.Fatalf("unfinished: %q", left)
			}
			if i, err := os.Stat(left[0]); err != nil || i.Mode() != perm|0o600 {
				t.Errorf("unfinished: %v, %v", i.Mode(), err)
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			testwait.Until(t, "the end of the first client", func() bool { return w.server.Stats().Clients == 0 })
			i, err := create(t, w.client(), "f", o).Commit(testContext(t), 0, NoSum, nil)
			if err != nil || i.Mode() != perm {
				t.Errorf("%v, %v", i.Mode(), err)
			}
		})
	}
}

func TestUploadWithoutACommitIsRemoved(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	for _, end := range []func(*Upload) error{
		func(u *Upload) error { return u.Abort(testContext(t)) }, (*Upload).Close,
	} {
		u := create(t, c, "f", CreateOptions{})
		if _, err := u.WriteAt(testContext(t), []byte("x"), 1<<20); err != nil {
			t.Fatal(err)
		}
		if err := end(u); err != nil {
			t.Error(err)
		}
		testwait.Until(t, "the file is gone", func() bool {
			return w.server.Stats().OpenFiles == 1 && len(w.temporary()) == 0 // the window
		})
	}
	kept := create(t, c, "f", CreateOptions{ID: "1"})
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "the upload is closed", func() bool { return w.server.Stats().OpenFiles == 1 }) // the window
	if len(w.temporary()) != 1 {
		t.Error("an upload with an ID is gone")
	}
	if err := create(t, c, "f", CreateOptions{ID: "1"}).Abort(testContext(t)); err != nil || len(w.temporary()) != 0 {
		t.Error(err, w.temporary())
	}
}

func TestSourceThatIsShortFailsWithWhatWasWritten(t *testing.T) {
	overEach(t, writable, func(t *testing.T, w *world) {
		u := create(t, w.client(), "f", CreateOptions{})
		n, err := u.CopyFrom(testContext(t), bytes.NewReader(random(1<<20+1)), 0, 3<<20)
		if n != 1<<20+1 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d, %v", n, err)
		}
		if err := u.Abort(testContext(t)); err != nil {
			t.Error(err)
		}
	})
}

// A file system of 1 MiB.
func TestFullDiskIsToldWithWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs: %v (needs CAP_SYS_ADMIN)", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := way.serveDir(t, dir, writable)
			c := w.client()
			u := create(t, c, "f", CreateOptions{ID: "1"})
			content := random(4 << 20)
			n, err := u.CopyFrom(testContext(t), bytes.NewReader(content), 0, 4<<20)
			if !errors.Is(err, syscall.ENOSPC) || n > 1<<20 {
				t.Errorf("%d, %v", n, err)
			}
			if got, err := os.ReadFile(w.temporary()[0]); err != nil || int64(len(got)) < n {
				t.Errorf("%d bytes are there of %d, %v", len(got), n, err)
			} else {
				same(t, "what was written", got[:n], content[:n])
			}
			if err := u.Abort(testContext(t)); err != nil {
				t.Error(err)
			}
			if _, err := c.WriteFile(testContext(t), "f", random(SmallBytes), CreateOptions{}); err != nil {
				t.Errorf("the room did not come back: %v", err)
			}
			if err := os.Remove(filepath.Join(dir, "f")); err != nil {
				t.Error(err)
			}
		})
	}
}
