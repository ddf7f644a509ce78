package peer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestUnusableTMPDIRIsNamed(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{
		"/nowhere": "/nowhere: no directory for a socket can be made there: no such file or directory: set TMPDIR to",
		long:       " bytes, and may have 107: set TMPDIR to a shorter one",
	} {
		t.Setenv("TMPDIR", dir)
		if _, err := newSocketDir("test"); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.HasPrefix(err.Error(), dir+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("TMPDIR=%s: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(long); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
