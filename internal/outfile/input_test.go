package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOnlyRegularFilesAreOpenedAndNobodyIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	fifo, file, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(unix.Mkfifo(fifo, 0o666), os.WriteFile(file, []byte("x"), 0o666),
		os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(30*time.Second, func() { panic("waits for somebody to write the FIFO") })
	defer stuck.Stop()
	for path, want := range map[string]error{fifo: errNotRegular, dir: errNotRegular, "/dev/null": errNotRegular,
		dir + "/none": fs.ErrNotExist, file: nil, link: nil} {
		f, err := OpenInput(path)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
}
