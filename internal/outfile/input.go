package outfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errNotRegular means that the path names a directory, a FIFO or a device.
var errNotRegular = errors.New("no regular file")

// OpenInput opens a regular file to be read, the counterpart of what this package writes. It never waits, as opening a FIFO
// does until somebody writes it.
func OpenInput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
