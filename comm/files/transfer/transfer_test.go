package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/unsized"
	"pinwheel/internal/testwait"
)

// Sizes around those at which something else is done.
var sizes = []int{
	0, 1, 4095, 4097, files.SmallBytes - 1, files.SmallBytes, files.SmallBytes + 1, 1<<20 + 3, holeBytes * 3, 9<<20 + 1,
}

func TestFilesArriveWholeBothWays(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	for _, sum := range []files.Sum{files.NoSum, files.CRC32C, files.SHA256} {
		for _, n := range sizes {
			name := fmt.Sprintf("%s-%d", sum, n)
			content := random(n)
			put(t, filepath.Join(there, name), content, 0o640)
			r, err := Get(t.Context(), c, name, here, Options{Verify: sum})
			if err != nil || r != (Result{Files: 1, Bytes: int64(n)}) {
				t.Errorf("get %s: %+v, %v", name, r, err)
			}
			holds(t, filepath.Join(here, name), content, 0o640)
			r, err = Put(t.Context(), c, filepath.Join(here, name), "back/"+name, Options{Verify: sum})
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("put into no directory: %+v, %v", r, err)
			}
			r, err = Put(t.Context(), c, filepath.Join(here, name), "back-"+name, Options{Verify: sum})
			if err != nil || r != (Result{Files: 1, Bytes: int64(n)}) {
				t.Errorf("put %s: %+v, %v", name, r, err)
			}
			holds(t, filepath.Join(there, "back-"+name), content, 0o640)
		}
	}
	for _, dir := range []string{here, there} {
		for _, name := range list(t, dir) {
			if isPartial(name) {
				t.Errorf("left %s", name)
			}
		}
	}
}

func TestDestinationsAreThoseOfCp(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	put(t, filepath.Join(there, "d/f"), []byte("f"), 0o644)
	put(t, filepath.Join(here, "old"), []byte("old"), 0o600)
	must(t, os.Symlink("old", filepath.Join(here, "link")), os.Mkdir(filepath.Join(here, "dir"), 0o755))
	for _, local := range []string{"new", "old", "link", "dir", "dir/"} {
		if _, err := Get(t.Context(), c, "/d/f", filepath.Join(here)+"/"+local, Options{}); err != nil {
			t.Errorf("%s: %v", local, err)
		}
	}
	is(t, "got", list(t, here), []string{"dir/", "dir/f", "link", "new", "old"})
	if to, err := os.Readlink(filepath.Join(here, "link")); to != "old" {
		t.Errorf("the link that was named leads to %q, %v", to, err)
	}
	must(t, unix.Mkfifo(filepath.Join(here, "fifo"), 0o600), os.Symlink("none", filepath.Join(here, "dangling")))
	for _, name := range []string{"dir/f", "link", "new", "old"} {
		holds(t, filepath.Join(here, name), []byte("f"), 0o644)
	}
	for paths, says := range map[[2]string]string{
		{"d/f", "none/"}: "no such directory", {"d/f", "none/f"}: "no such file", {"d/f", "old/f"}: "not a directory",
		{"d/f", "fifo/f"}: "not a directory", {"d/f", "dangling"}: "leads to nothing",
		{"d", ""}: "--recursive", {"none", ""}: "no such file", {"../x", ""}: "no such file",
	} {
		_, err := Get(t.Context(), c, paths[0], here+"/"+paths[1], Options{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", paths, err)
		}
	}
	_, err := Get(t.Context(), c, "d", filepath.Join(here, "fifo"), Options{Recursive: true}) // nobody writes into it
	if err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a tree into a FIFO: %v", err)
	}
	for name, want := range map[string]string{"d": "d/new", "d/": "d/new", "d/g": "d/g", "/": "new"} {
		if _, err := Put(t.Context(), c, filepath.Join(here, "new"), name, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, filepath.Join(there, want), []byte("f"), 0o644)
	}
}

func TestFilesOfProcAreNotCopiedAsEmpty(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	if _, err := Put(t.Context(), c, "/proc/self/status", "status", Options{}); !errors.Is(err, unsized.Err) {
		t.Errorf("put: %v", err)
	}
	is(t, "put", list(t, there), nil)
}

// Times that no count of nanoseconds has, and the one that such a count takes for none.
func TestModificationTimesAreKept(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-1, 1), time.Unix(1<<33, 999_999_999)} {
		for _, n := range []int{3, files.SmallBytes + 1} {
			path := filepath.Join(there, "tree", "f")
			put(t, path, random(n), 0o644)
			f, err := os.Open(path)
			must(t, err, newfile.SetModTime(f, at), f.Close())
			want, err := os.Stat(path) // file systems have their limits, too
			must(t, err)
			_, err = Get(t.Context(), c, "tree/f", here+"/one", Options{})
			must(t, err)
			_, err = Get(t.Context(), c, "tree", here+"/tree", Options{Recursive: true})
			must(t, err)
			_, err = Put(t.Context(), c, path, "back", Options{})
			must(t, err)
			_, err = Put(t.Context(), c, filepath.Join(there, "tree"), "again", Options{Recursive: true})
			must(t, err)
			for _, copied := range []string{here + "/one", here + "/tree/f", there + "/back", there + "/again/f"} {
				got, err := os.Stat(copied)
				must(t, err)
				if !got.ModTime().Equal(want.ModTime()) {
					t.Errorf("%s of %d bytes: %v, want %v", copied, n, got.ModTime(), want.ModTime())
				}
			}
			must(t, os.RemoveAll(here+"/tree"), os.RemoveAll(there+"/again"))
		}
	}
}

func TestResumeNeedsAChecksum(t *testing.T) {
	if err := (&Options{Resume: true, Verify: files.NoSum}).EnsureDefaults(); err == nil {
		t.Error("accepted")
	}
	if err := (&Options{Verify: "md5"}).EnsureDefaults(); err == nil {
		t.Error("accepted md5")
	}
}

// interrupted begins a copy that resumes, and ends it when so many bytes have been moved. On a busy machine that may be
// too late: then reset removes the copy, and it begins again.
func interrupted(t *testing.T, at int64, reset func(), copyIt func(context.Context, Options) (Result, error)) {
	t.Helper()
	for {
		ctx, cancel := context.WithCancel(t.Context())
		m := new(Meter)
		ended := make(chan error, 1)
		go func() {
			_, err := copyIt(ctx, Options{Resume: true, Meter: m})
			ended <- err
		}()
		testwait.Until(t, "some of it arrived", func() bool { return m.Bytes.Load() >= at || len(ended) > 0 })
		cancel()
		switch err := testwait.Receive(t, "the end of the copy", ended); {
		case errors.Is(err, context.Canceled):
			return
		case err != nil:
			t.Fatal(err)
		}
		reset()
	}
}

const largeBytes = 200 << 20 // 200 MiB: takes longer than to look at it

func TestGetGoesOnIfTheSourceIsTheSame(t *testing.T) {
	testwait.SkipUnderRace(t, "copies that are interrupted, and whole ones, have tests of their own")
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	content := random(largeBytes)
	put(t, filepath.Join(there, "f"), content, 0o644)
	get := func(ctx context.Context, o Options) (Result, error) { return Get(ctx, c, "f", here, o) }
	for _, change := range []string{"nothing", "the source", "the part"} {
		t.Run(change, func(t *testing.T) {
			reset := func() { must(t, os.RemoveAll(filepath.Join(here, "f"))) }
			reset()
			interrupted(t, largeBytes/4, reset, get)
			left := list(t, here)
			if len(left) != 1 || !isPartial(left[0]) {
				t.Fatalf("left %q", left)
			}
			switch change {
			case "the source":
				content[7]++
				put(t, filepath.Join(there, "f"), content, 0o644)
			case "the part":
				f, err := os.OpenFile(filepath.Join(here, left[0]), os.O_WRONLY, 0)
				must(t, err)
				_, err = f.WriteAt([]byte{content[99] + 1}, 99)
				must(t, err, f.Close())
			}
			r, err := get(t.Context(), Options{Resume: true})
			went, again := r.ResumedBytes >= largeBytes/4, r.Retries > 0
			if err != nil || went != (change == "nothing") || again != (change == "the part") {
				t.Errorf("%+v, %v", r, err)
			}
			holds(t, filepath.Join(here, "f"), content, 0o644)
			is(t, "left", list(t, here), []string{"f"})
			if r, err := get(t.Context(), Options{Resume: true}); err != nil || r.Unchanged != 1 || r.Files != 0 {
				t.Errorf("again: %+v, %v", r, err)
			}
		})
	}
}

func TestPutGoesOnIfTheSourceIsTheSame(t *testing.T) {
	testwait.SkipUnderRace(t, "copies that are interrupted, and whole ones, have tests of their own")
	testwait.Bound(t)
	there, address := serveAt(t)
	source := filepath.Join(t.TempDir(), "f")
	content := random(largeBytes)
	put(t, source, content, 0o644)
	send := func(ctx context.Context, o Options) (Result, error) {
		c := dial(t, address)
		defer c.Close() // the server keeps what came through a connection that has ended
		return Put(ctx, c, source, "f", o)
	}
	interrupted(t, largeBytes/2, func() { must(t, os.Remove(filepath.Join(there, "f"))) }, send)
	if _, err := os.Stat(filepath.Join(there, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("half of a file: %v", err)
	}
	r, err := send(t.Context(), Options{Resume: true})
	if err != nil || r.ResumedBytes == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, filepath.Join(there, "f"), content, 0o644)
	is(t, "left", list(t, there), []string{"f"})
}

func TestInterruptedCopyLeavesNothing(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	put(t, filepath.Join(there, "f"), random(largeBytes), 0o644)
	var m *Meter
	reset := func() { must(t, os.Remove(filepath.Join(here, "f"))) }
	interrupted(t, 1, reset, func(ctx context.Context, o Options) (Result, error) {
		o.Resume, m = false, o.Meter
		return Get(ctx, c, "f", here, o)
	})
	is(t, "left", list(t, here), nil)
	if n := m.Bytes.Load(); n != 0 {
		t.Errorf("the meter has %d bytes of nothing", n)
	}
}

// changing changes a file all the time, until the test ends or stop is called.
func changing(t *testing.T, path string, change func(f *os.File) error) (stop func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = change(f) // the copy tells
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(end)
		<-ended
		must(t, f.Close())
	})
	t.Cleanup(stop)
	return stop
}

func grow(f *os.File) error {
	_, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Write([]byte("x"))
	}
	return err
}

// A file that is written to all the time is never the same before and after.
func TestSourceThatChangesIsAnError(t *testing.T) {
	testwait.Bound(t)
	for what, c := range map[string]struct {
		change func(f *os.File) error
		strict bool
	}{
		"grows, strictly": {grow, true},
		"is written over": {func(f *os.File) error { _, err := f.WriteAt([]byte("x"), 5); return err }, false},
	} {
		there, client := serve(t)
		here := t.TempDir()
		path := filepath.Join(there, "f")
		put(t, path, random(20<<20), 0o644)
		stop := changing(t, path, c.change)
		for verb, copyIt := range map[string]func() (Result, error){
			"get": func() (Result, error) { return Get(t.Context(), client, "f", here, Options{Strict: c.strict}) },
			"put": func() (Result, error) { return Put(t.Context(), client, path, "to", Options{Strict: c.strict}) },
		} {
			var r Result
			var err error
			testwait.Until(t, "the file changes during each of the copies", func() bool {
				must(t, os.RemoveAll(filepath.Join(here, "f")), os.RemoveAll(filepath.Join(there, "to")))
				r, err = copyIt()
				return err != nil
			})
			if !strings.Contains(err.Error(), "changed each time it was copied, 3 times") || r.Retries != 3 || r.Grown > 0 {
				t.Errorf("%s of one that %s: %+v, %v", verb, what, r, err)
			}
		}
		stop()
		is(t, "left", list(t, here), nil)
		is(t, "left there", list(t, there), []string{"f"})
	}
}

func TestSparseFilesStaySparse(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	here := t.TempDir()
	const size = 5 << 30 // 5 GiB
	source := filepath.Join(there, "f")
	f, err := os.Create(source)
	must(t, err, f.Truncate(size))
	for _, off := range []int64{0, 1<<32 - 5, size - 1} {
		_, err := f.WriteAt([]byte("data"), min(off, size-4))
		must(t, err)
	}
	must(t, f.Close())
	if used(t, source) > 1<<20 {
		t.Skip("the file system of the test has no holes")
	}
	got, back := filepath.Join(here, "f"), filepath.Join(there, "g")
	if r, err := Get(t.Context(), c, "f", here, Options{}); err != nil || r.Bytes != size {
		t.Fatalf("get: %+v, %v", r, err)
	}
	if n := c.Stats().BytesRead; n > 1<<20 {
		t.Errorf("%d bytes came of a file of holes", n)
	}
	if r, err := Put(t.Context(), c, got, "g", Options{Verify: files.NoSum}); err != nil || r.Bytes != size {
		t.Fatalf("put: %+v, %v", r, err)
	}
	for _, path := range []string{got, back} {
		if n := used(t, path); n > 1<<20 {
			t.Errorf("%s takes %d bytes", path, n)
		}
		f, err := os.Open(path)
		must(t, err)
		for _, off := range []int64{0, 1<<32 - 5, size - 4} {
			b := make([]byte, 4)
			if _, err := f.ReadAt(b, off); err != nil || string(b) != "data" {
				t.Errorf("%s at %d: %q, %v", path, off, b, err)
			}
		}
		if info, err := f.Stat(); err != nil || info.Size() != size {
			t.Error(info, err)
		}
		f.Close()
	}
}

func used(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

func TestFullDisksAndLostServersEndATree(t *testing.T) {
	testwait.Bound(t)
	for err, want := range map[error]bool{
		&fs.PathError{Err: syscall.ENOSPC}: true, &fs.PathError{Err: syscall.EACCES}: false, files.ErrPeerGone: true,
		files.ErrChanged: false, context.Canceled: true,
	} {
		if fatal(err) != want {
			t.Errorf("%v ends a tree: %v", err, !want)
		}
	}
}

// The kernel copies no range of a file to another file system (EXDEV).
func TestGetToAnotherFileSystem(t *testing.T) {
	testwait.Bound(t)
	here, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(here)
	there, c := serve(t)
	content := random(20 << 20)
	put(t, filepath.Join(there, "f"), content, 0o640)
	for range 2 { // the second replaces the first
		if r, err := Get(t.Context(), c, "f", here, Options{Verify: files.NoSum}); err != nil || r.Bytes != int64(len(content)) {
			t.Errorf("%+v, %v", r, err)
		}
		holds(t, filepath.Join(here, "f"), content, 0o640)
	}
}
