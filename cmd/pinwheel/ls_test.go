package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

func TestModesAreThoseOfLs(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		0o644: "-rw-r--r--", fs.ModeDir | 0o755: "drwxr-xr-x", fs.ModeSymlink | 0o777: "lrwxrwxrwx",
		fs.ModeNamedPipe | 0o600: "prw-------", fs.ModeSocket: "s---------", fs.ModeDevice | 0o660: "brw-rw----",
		fs.ModeDevice | fs.ModeCharDevice | 0o666: "crw-rw-rw-", fs.ModeIrregular | 0o400: "?r--------",
		fs.ModeDir | fs.ModeSticky | 0o777: "drwxrwxrwx",
	} {
		if got := lsMode(mode); got != want {
			t.Errorf("%v: %s, want %s", mode, got, want)
		}
	}
}

func TestLongListHasTheKindOfFiles(t *testing.T) {
	testwait.Bound(t)
	there := t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(socketDir(t), "s"))
	write(t, filepath.Join(there, "file"), nil)
	for _, err := range []error{
		os.Mkdir(filepath.Join(there, "dir"), 0o755), os.Symlink("file", filepath.Join(there, "link")),
		unix.Mkfifo(filepath.Join(there, "pipe"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stdout, _, _ := pinwheel(t, "ls -l "+s.address)
	var kinds string
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		kinds += line[:1]
	}
	if kinds != "d-l?" { // a server tells no more of what it doesn't serve
		t.Errorf("kinds %q of %q", kinds, stdout)
	}
}
