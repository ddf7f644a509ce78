package newfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Between the look at an unfinished file and its removal, an upload may be committed and another one begin.
func TestAbandonKeepsANameThatPassedToAnotherFile(t *testing.T) {
	path := t.TempDir()
	dir := opened(t, path)
	in := func(name string) string { return filepath.Join(path, name) }
	if err := os.WriteFile(in("unfinished"), []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := opened(t, in("unfinished"))
	err := errors.Join(os.Rename(in("unfinished"), in("final")), os.WriteFile(in("unfinished"), []byte("second"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	abandon(int(dir.Fd()), "unfinished", int(first.Fd()), time.Time{})
	if got := names(t, path); !slices.Equal(got, []string{"final", "unfinished"}) {
		t.Errorf("left: %q", got)
	}
	Abandon(dir, "unfinished", time.Time{}) // nobody has locked it
	if got := names(t, path); !slices.Equal(got, []string{"final"}) {
		t.Errorf("left: %q", got)
	}
}
