package broker

import (
	"os"
	"path/filepath"
	"testing"
)

// Somebody else may have made the directory of a user who has no $XDG_RUNTIME_DIR.
func TestDirectoryOfStrangersHidesNoBroker(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", tmp)
	system := filepath.Join(tmp, "system")
	dir, err := RuntimeDir()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, ownSocket)
	for _, file := range []string{system, own} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := socketOr(system); got != own {
		t.Errorf("%s, want that of this user", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := socketOr(system); got != system {
		t.Errorf("%s, want that of all users", got)
	}
}
