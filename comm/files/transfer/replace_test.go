package transfer

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/comm/files/internal/newfile"
	"pinwheel/internal/testwait"
)

// What people write into stays what it is: a get of a device by root would replace /dev/null for all.
func TestOnlyFilesAreReplaced(t *testing.T) {
	testwait.Bound(t)
	there, c := serve(t)
	sizes := map[string]int{"small": 10, "large": files.SmallBytes + 1}
	for name, n := range sizes {
		put(t, filepath.Join(there, "tree", name), random(n), 0o644)
	}
	for what, make := range map[string]func(path string) error{
		"a FIFO": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a socket": func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
		"a device": func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		for name := range sizes {
			here, err := os.MkdirTemp("", "get") // those of the test are too long for sun_path
			must(t, err)
			defer os.RemoveAll(here)
			path := filepath.Join(here, name)
			if err := make(path); errors.Is(err, unix.EPERM) {
				t.Logf("%s: only root makes one", what)
				continue
			} else if err != nil {
				t.Fatal(what, err)
			}
			before, err := os.Lstat(path)
			must(t, err, os.Symlink(name, path+".link"))
			for _, local := range []string{path, here, path + ".link"} {
				if _, err := Get(t.Context(), c, "tree/"+name, local, Options{}); !errors.Is(err, newfile.ErrNoFile) {
					t.Errorf("%s, as %s: %v", what, local, err)
				}
			}
			r, err := Get(t.Context(), c, "tree", here, Options{Recursive: true})
			if err != nil || r.Failed == 0 {
				t.Errorf("%s in a tree: %+v, %v", what, r, err)
			}
			after, err := os.Lstat(path)
			must(t, err)
			if !os.SameFile(before, after) {
				t.Errorf("%s was replaced by %v", what, after.Mode())
			}
		}
	}
}
