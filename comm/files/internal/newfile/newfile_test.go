package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened returns a directory that is open until the test ends.
func opened(t *testing.T, path string) *os.File {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// unnamed makes a file without a name, or skips the test where none can be.
func unnamed(t *testing.T, dir *os.File, content string) *os.File {
	t.Helper()
	f, err := Create(dir, 0o640)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the file system of the test has no O_TMPFILE")
	}
	if err == nil {
		_, err = f.WriteString(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestFilesAppearWithTheirName(t *testing.T) {
	for _, way := range []string{"by its descriptor", "by /proc"} {
		t.Run(way, func(t *testing.T) {
			noEmptyPath.Store(way == "by /proc")
			t.Cleanup(func() { noEmptyPath.Store(false) })
			path := t.TempDir()
			dir := opened(t, path)
			f := unnamed(t, dir, "new")
			if left := names(t, path); len(left) > 0 {
				t.Errorf("%q before it has a name", left)
			}
			at := time.Unix(1_000_000_000, 5)
			if err := SetModTime(f, at); err != nil {
				t.Error(err)
			}
			if err := Link(f, dir, "f"); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(path, "f"))
			info, err2 := os.Stat(filepath.Join(path, "f"))
			if err := errors.Join(err, err2); err != nil || string(b) != "new" || !info.ModTime().Equal(at) {
				t.Errorf("%q, %v, %v", b, info, err)
			}
			if err := Link(unnamed(t, dir, "other"), dir, "f"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a name that was taken: %v", err)
			}
		})
	}
}

func TestReplaceTakesTheNameOfWhatIsThere(t *testing.T) {
	path, outside := t.TempDir(), t.TempDir()
	dir := opened(t, path)
	secret := filepath.Join(outside, "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o600), os.Symlink(secret, filepath.Join(path, "link")),
		os.WriteFile(filepath.Join(path, "f"), []byte("old"), 0o600), os.Mkdir(filepath.Join(path, "d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	asked := 0
	temporary := func() string { asked++; return ".temporary" }
	for name, there := range map[string]bool{"f": true, "link": false, "g": false, "h": true} {
		if err := Replace(unnamed(t, dir, "new"), dir, name, there, temporary); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(filepath.Join(path, name)); err != nil || string(b) != "new" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if asked != 3 {
		t.Errorf("%d temporary names", asked)
	}
	if err := Replace(unnamed(t, dir, "new"), dir, "d", false, temporary); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory was replaced: %v", err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
	if left := names(t, path); len(left) != 5 {
		t.Errorf("left: %q", left)
	}
}

func TestManyBecomeDurableTogether(t *testing.T) {
	testwait.Bound(t)
	path := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	// Those that come while the first round is under way are one round.
	var g Group
	g.busy = true
	const files = 40
	var all sync.WaitGroup
	for i := range files {
		f, err := os.Create(filepath.Join(path, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all.Go(func() {
			if err := g.Sync(Opened(f, st.Dev)); err != nil {
				t.Error(err)
			}
		})
	}
	testwait.Until(t, "all wait", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.waiting) == files
	})
	g.run()
	all.Wait()
	if g.rounds != 1 || g.busy {
		t.Errorf("%d rounds", g.rounds)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := g.Sync(Opened(f, st.Dev)); err != nil {
		t.Errorf("a directory: %v", err)
	}
}

// A file that can't be synchronised fails, and no other does.
func TestFilesThatAreClosedFail(t *testing.T) {
	for _, n := range []int{fewFiles, fewFiles + 1} {
		path := t.TempDir()
		var files []File
		for i := range n {
			f, err := os.Create(filepath.Join(path, strconv.Itoa(i)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files = append(files, Opened(f, uint64(i/2))) // file systems of two files
		}
		files[0].Close()
		for i, err := range Sync(files) {
			// With many, the oldest of each file system speaks for it.
			if fails := i == 0 || n > fewFiles && i == 1; (err != nil) != fails {
				t.Errorf("%d of %d: %v", i, n, err)
			}
		}
	}
}
