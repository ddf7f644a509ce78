package files

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// What servers and clients leave that are killed goes when the next upload begins beside it. What is in use stays, and
// so does what somebody may go on with. The modification time is that of the source, which may be any.
func TestUploadsThatWereLeftAreRemoved(t *testing.T) {
	testwait.Bound(t)
	path, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leave := func(name string) string {
		must(os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600))
		must(os.Chtimes(filepath.Join(path, name), time.Time{}, time.Unix(0, 0)))
		return name
	}
	old, written, link, fifo := leave(newHidden()), leave(newHidden()), newHidden(), newHidden()
	waiting, resumed := leave(hiddenOf("f", "1")), leave(hiddenOf("f", "2"))
	theirs := leave(hidden + "notes")
	for _, name := range []string{written, resumed} {
		f, err := os.Open(filepath.Join(path, name))
		must(err)
		defer f.Close()
		must(unix.Flock(int(f.Fd()), unix.LOCK_EX))
	}
	must(os.WriteFile(outside, nil, 0o600))
	must(os.Symlink(outside, filepath.Join(path, link)))
	must(unix.Mkfifo(filepath.Join(path, fifo), 0o600))
	dir, err := os.Open(path)
	must(err)
	defer dir.Close()
	s := newSweeper()
	defer s.close()
	stay := []string{written, resumed, theirs, link, fifo}
	begin := time.Now()
	for k, sweep := range []struct {
		after time.Duration
		also  []string // that stay
	}{{lockTime / 2, []string{old, waiting}}, {2 * lockTime, []string{waiting}}, {keepUploads + time.Hour, nil}} {
		s.now = func() time.Time { return begin.Add(sweep.after) }
		s.sweep(dir, fileKey{1, uint64(k)})
		s.tasks.Wait()
		entries, err := os.ReadDir(path)
		must(err)
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		want := append(slices.Clone(stay), sweep.also...)
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("after %v %q are left, not %q", sweep.after, left, want)
		}
	}
}

func TestUploadHasItsDirectoryLookedInto(t *testing.T) {
	w := ways[0].serve(t, writable)
	w.write("d/f", nil)
	if _, err := w.client().WriteFile(testContext(t), "d/new", nil, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := w.server.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.swept) != 1 {
		t.Errorf("%d directories were looked into", len(s.swept))
	}
}

func TestDirectoriesAreLookedIntoNowAndThen(t *testing.T) {
	testwait.Bound(t)
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := newSweeper()
	now := time.Now().Add(2 * lockTime) // of what is made below
	s.now = func() time.Time { return now }
	for k, want := range []int{0, 1, 0} {
		path := filepath.Join(dir, newHidden())
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.sweep(f, fileKey{1, 2})
		s.tasks.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) != want {
			t.Errorf("sweep %d: %d are left, %v", k, len(left), err)
		}
		now = now.Add(sweepEvery/2 + time.Minute)
	}
	s.close()
	s.sweep(f, fileKey{3, 4})
	if len(s.swept) != 1 {
		t.Error("a sweep began after the end")
	}
}
