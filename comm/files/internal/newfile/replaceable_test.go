package newfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyFilesAndLinksAreReplaceable(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	at := func(name string) string { return filepath.Join(dir.Name(), name) }
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: at("socket")})
	if err != nil {
		t.Skip(err) // the path is too long for a socket
	}
	defer l.Close()
	if err := errors.Join(
		os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("directory"), 0o700), unix.Mkfifo(at("fifo"), 0o600),
		os.Symlink("fifo", at("link")),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file": nil, "directory": nil, "link": nil, "none": nil, "fifo": ErrNoFile, "socket": ErrNoFile,
	} {
		if there, err := Replaceable(int(dir.Fd()), name); !errors.Is(err, want) || there != (name != "none") {
			t.Errorf("%s: there %v, %v, want %v", name, there, err, want)
		}
	}
}
