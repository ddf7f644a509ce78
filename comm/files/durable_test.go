package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// failing makes fsync(2) fail, of files or of directories, until the test ends. Nothing else happens to them.
func failing(t *testing.T, directories bool) {
	t.Helper()
	works := fsync
	t.Cleanup(func() { fsync = works })
	fsync = func(f *os.File) error {
		if info, err := f.Stat(); err != nil || info.IsDir() == directories {
			return errors.Join(err, &fs.PathError{Op: "sync", Path: f.Name(), Err: unix.EIO})
		}
		return works(f)
	}
}

// uploadOf begins an upload and has all its bytes written.
func uploadOf(t *testing.T, c *Client, name string, o CreateOptions, content []byte) *Upload {
	t.Helper()
	u := create(t, c, name, o)
	if _, err := u.CopyFrom(testContext(t), bytes.NewReader(content), 0, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	return u
}

// After a write error, the page cache has bytes that the disk does not have.
func TestUploadThatTheDiskHasLostIsOver(t *testing.T) {
	failing(t, false) // before there is a server, and until it is gone
	w := ways[0].serve(t, writable)
	c := w.client()
	content := random(2 * resumeUnit)
	for _, id := range []string{"", "abc123"} {
		o := CreateOptions{ID: id}
		u := uploadOf(t, c, "f", o, content)
		for _, want := range []error{syscall.EIO, ErrClosed} {
			_, err := u.Commit(testContext(t), int64(len(content)), CRC32C, sum(t, CRC32C, content))
			if !errors.Is(err, want) {
				t.Errorf("id %q: %v, not %v", id, err, want)
			}
		}
		if left := w.temporary(); len(left) > 0 {
			t.Errorf("id %q: left: %q", id, left)
		}
		if err := u.Abort(testContext(t)); err != nil {
			t.Errorf("id %q: abort: %v", id, err)
		}
		if n := w.server.Stats().OpenFiles; n != 1 {
			t.Errorf("id %q: %d are open, with the window", id, n)
		}
		again := create(t, c, "f", o)
		if again.Size() != 0 {
			t.Errorf("id %q: another attempt goes on after %d bytes that are lost", id, again.Size())
		}
		if err := again.Abort(testContext(t)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it has appeared")
	}
}

// A file that has its name is nobody's to write, also if it may have no name after a crash.
func TestUploadWithItsNameIsOver(t *testing.T) {
	failing(t, true)
	w := ways[0].serve(t, writable)
	c := w.client()
	content := random(2 * resumeUnit)
	for name, o := range map[string]CreateOptions{"f": {}, "g": {NoReplace: true}} {
		u := uploadOf(t, c, name, o, content)
		if _, err := u.Commit(testContext(t), int64(len(content)), NoSum, nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := u.WriteAt(testContext(t), []byte("x"), 0); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: a write into a file that others see: %v", name, err)
		}
		same(t, name, w.content(name), content)
		if err := u.Abort(testContext(t)); err != nil {
			t.Error(err)
		}
	}
}

// An upload whose hidden name somebody has taken keeps no descriptor and no lock.
func TestUploadThatCantBeRemovedIsOver(t *testing.T) {
	w := ways[0].serve(t, writable)
	c := w.client()
	o := CreateOptions{ID: "abc123"}
	u := uploadOf(t, c, "f", o, []byte("x"))
	for _, name := range w.temporary() {
		if err := os.Rename(name, filepath.Join(w.dir, "elsewhere")); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Abort(testContext(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	f, err := os.Open(filepath.Join(w.dir, "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("it is still locked: %v", err)
	}
}

// Nobody writes into what has the hidden name of an upload and is another file.
func TestWhatIsNoUploadIsNotWrittenTo(t *testing.T) {
	var warned atomic.Int64
	w := ways[0].serve(t, ServerOptions{AllowWrite: true, Warn: func(string) { warned.Inc() }})
	c := w.client()
	w.write("other", []byte("other"))
	o := CreateOptions{ID: "abc123"}
	link, fifo := filepath.Join(w.dir, hiddenOf("f", o.ID)), filepath.Join(w.dir, hiddenOf("g", o.ID))
	if err := errors.Join(os.Link(filepath.Join(w.dir, "other"), link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	content := random(2 * resumeUnit)
	u := uploadOf(t, c, "f", o, content)
	if u.Size() != 0 {
		t.Errorf("the upload goes on after %d bytes of another file", u.Size())
	}
	if _, err := u.Commit(testContext(t), int64(len(content)), CRC32C, sum(t, CRC32C, content)); err != nil {
		t.Error(err)
	}
	same(t, "f", w.content("f"), content)
	same(t, "other", w.content("other"), []byte("other"))
	if _, err := c.Create(testContext(t), "g", o); !errors.Is(err, fs.ErrExist) || warned.Load() != 1 {
		t.Errorf("%v, %d warnings", err, warned.Load())
	}
}
