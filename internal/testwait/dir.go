package testwait

import (
	"os"
	"testing"
)

// ShortDir is TempDir of the test with a path that leaves room for names of sockets: sun_path of unix(7) has 108 bytes,
// and the name of the test is no part of it.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
