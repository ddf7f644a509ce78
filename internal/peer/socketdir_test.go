package peer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The next process removes what others have left that were killed, and nothing else.
func TestDirectoriesThatWereLeftAreRemoved(t *testing.T) {
	in := t.TempDir()
	t.Setenv("TMPDIR", in)
	live, err := newSocketDir("test")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newSocketDir("test")
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does
	for _, name := range []string{"pinwheel-test-unlocked", "pinwheel-test-new", "pinwheel-other-1", "test-1"} {
		if err := os.Mkdir(filepath.Join(in, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in, "pinwheel-test-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * startTime)
	for _, e := range entries {
		if e.Name() == "pinwheel-test-new" {
			continue
		}
		if err := os.Chtimes(filepath.Join(in, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	another, err := newSocketDir("test")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err = os.ReadDir(in)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{
		filepath.Base(live.path), filepath.Base(another.path), "pinwheel-test-new", "pinwheel-other-1", "test-1",
		"pinwheel-test-file",
	}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("%q are left, not %q, %v", left, want, err)
	}
	for _, d := range []*socketDir{live, another} {
		if err := d.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.path); err == nil {
			t.Errorf("%s is left", d.path)
		}
	}
}
