package unsized

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfProcAreFound(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"/proc/self/status": Err, empty: nil} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := Check(int(f.Fd()), 0); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileThatHasGrownIsSized(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("more"); err != nil {
		t.Fatal(err)
	}
	if err := Check(int(f.Fd()), 0); err != nil {
		t.Error(err)
	}
}
