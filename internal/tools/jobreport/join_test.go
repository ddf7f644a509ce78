package jobreport

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
)

func joined(t *testing.T, parent, step string) Dir {
	t.Helper()
	d, err := joinDir(parent, step)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLastOfAStepHasTheReportsOfAll(t *testing.T) {
	parent := t.TempDir()
	a, b, other := joined(t, parent, "7.0"), joined(t, parent, "7.0"), joined(t, parent, "7.1")
	if a.Path() != b.Path() || a.Path() == other.Path() {
		t.Fatalf("%s, %s, %s", a.Path(), b.Path(), other.Path())
	}
	for rank, d := range []Dir{a, b} {
		writeRank(t, filepath.Join(d.Path(), []string{"0.json", "1.json"}[rank]), report.Rank{Rank: rank, Size: 2, PID: 1})
	}
	if a.Last() {
		t.Error("the first to end is the last")
	}
	if err := a.Remove(); err != nil {
		t.Error(err)
	}
	if !b.Last() {
		t.Error("nobody is the last")
	}
	if files, err := b.Files(); err != nil || len(files) != 2 {
		t.Errorf("%q, %v", files, err)
	}
	for _, d := range []Dir{b, other} {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(parent + "/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Whatever the order in which processes join and end, each directory is removed once, by its last.
func TestOneOfManyIsTheLast(t *testing.T) {
	testwait.Bound(t)
	parent := t.TempDir()
	const ranks = 8
	for range 20 {
		var all, here sync.WaitGroup
		here.Add(ranks) // MPI_Init ends when all ranks are there
		lasts := atomic.NewInt32(0)
		for range ranks {
			all.Go(func() {
				d, err := joinDir(parent, "7.0")
				here.Done()
				if err != nil {
					t.Error(err)
					return
				}
				here.Wait()
				if d.Last() {
					lasts.Inc()
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := lasts.Load(); n != 1 {
			t.Fatalf("%d of %d were the last", n, ranks)
		}
		if left, _ := filepath.Glob(parent + "/*"); len(left) > 0 {
			t.Fatalf("left: %q", left)
		}
	}
}

func TestStepThatIsRepeatedStartsEmpty(t *testing.T) {
	parent := t.TempDir()
	killed := joined(t, parent, "7.0")
	writeRank(t, filepath.Join(killed.Path(), "5.json"), report.Rank{Rank: 5, Size: 6, PID: 1})
	killed.owner.Close() // as the kernel does
	again := joined(t, parent, "7.0")
	if files, err := again.Files(); err != nil || len(files) > 0 {
		t.Errorf("%q, %v", files, err)
	}
	again.owner.Close()
	long := time.Now().Add(-2 * oldAfter)
	if err := os.Chtimes(again.Path(), long, long); err != nil {
		t.Fatal(err)
	}
	d := joined(t, parent, "8.0") // sweeps
	if left, _ := filepath.Glob(parent + "/*"); len(left) != 1 || left[0] != d.Path() {
		t.Errorf("left: %q", left)
	}
}

func TestDirectoryOfAnotherIsNotJoined(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, joinedPrefix+"7.0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(parent, joinedPrefix+"7.0"), 0o777); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(parent, joinedPrefix+"7.1")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"7.0", "7.1"} {
		if d, err := joinDir(parent, step); err == nil {
			t.Errorf("%s was joined", d.Path())
		}
	}
}
