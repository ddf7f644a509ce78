package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/internal/testwait"
)

// Nobody writes into what has the name of a partial file and is another one.
func TestWhatIsNoPartialFileIsNotWrittenTo(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	content := random(files.SmallBytes + 1)
	put(t, filepath.Join(there, "f"), content, 0o644)
	info, err := c.Stat(t.Context(), "f")
	must(t, err)
	name := partialName("f", resumeKey("f", info.Size(), string(info.ETag())))
	for what, thing := range map[string]struct {
		make func(path, other string) error
		way  bool // it keeps its name
	}{
		"a hard link":          {func(path, other string) error { return os.Link(other, path) }, false},
		"somebody else's file": {func(path, other string) error { return os.Lchown(path, 12345, -1) }, false},
		"a symbolic link":      {func(path, other string) error { return os.Symlink(other, path) }, true},
		"a FIFO":               {func(path, other string) error { return unix.Mkfifo(path, 0o600) }, true},
		"a directory":          {func(path, other string) error { return os.Mkdir(path, 0o700) }, true},
	} {
		for _, resume := range []bool{false, true} {
			here := t.TempDir()
			other, path := filepath.Join(here, "other"), filepath.Join(here, name)
			put(t, other, []byte("other"), 0o644)
			if what == "somebody else's file" {
				if os.Geteuid() != 0 {
					t.Logf("%s: only root makes one", what)
					continue
				}
				put(t, path, content[:99], 0o644)
			}
			must(t, thing.make(path, other))
			r, err := Get(t.Context(), c, "f", here, Options{Resume: resume})
			holds(t, other, []byte("other"), 0o644)
			if thing.way {
				want := filepath.Join(here, "f") + ": " + name + " is in the way: it is no regular file"
				if err == nil || err.Error() != want {
					t.Errorf("%s: %+v, %v", what, r, err)
				}
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			if err != nil || r.ResumedBytes != 0 {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
			holds(t, filepath.Join(here, "f"), content, 0o644)
			is(t, "left", list(t, here), []string{"f", "other"})
		}
	}
}

// Older partial files go, and what has such a name and is none stays. Nobody waits for the other end of a FIFO.
func TestOlderPartialFilesGo(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	put(t, filepath.Join(there, "f"), random(files.SmallBytes+1), 0o644)
	older := func(key string) string { return partialName("f", strings.Repeat(key, len(newKey))) }
	put(t, filepath.Join(here, older("1")), nil, 0o600)
	must(t, unix.Mkfifo(filepath.Join(here, older("2")), 0o600), os.Mkdir(filepath.Join(here, older("3")), 0o700),
		os.Symlink(older("2"), filepath.Join(here, older("4"))))
	_, err := Get(t.Context(), c, "f", here, Options{})
	must(t, err)
	is(t, "left", list(t, here), []string{older("2"), older("3") + "/", older("4"), "f"})
}

// Of many copies to one file at once each completes it, or says that another one does.
func TestManyCopiesToOneFile(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	for _, n := range []int{10, 9<<20 + 1} {
		for _, resume := range []bool{false, true} {
			here, content := t.TempDir(), random(n)
			put(t, filepath.Join(there, "f"), content, 0o644)
			const copies = 8
			ended := make(chan error, copies)
			for range copies {
				go func() {
					_, err := Get(t.Context(), c, "f", here, Options{Resume: resume})
					ended <- err
				}()
			}
			completed := 0
			for range copies {
				switch err := testwait.Receive(t, "the end of a copy", ended); {
				case err == nil:
					completed++
				case !errors.Is(err, errBusy):
					t.Errorf("%d bytes: %v", n, err)
				}
			}
			if completed == 0 {
				t.Errorf("%d bytes: none has completed it", n)
			}
			holds(t, filepath.Join(here, "f"), content, 0o644)
			is(t, "left", list(t, here), []string{"f"})
		}
	}
}
