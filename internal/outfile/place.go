package outfile

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// overwrite puts the content into the file that is there. Room for it is made
// first: where there is none the old content stays.
func (f *File) overwrite() (err error) {
	target, err := os.OpenFile(f.target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	info, err := f.out.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		err = unix.Fallocate(int(target.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
		if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
	}
	if _, err := io.Copy(target, io.NewSectionReader(f.out, 0, info.Size())); err != nil {
		return err
	}
	if err := target.Truncate(info.Size()); err != nil {
		return err
	}
	return target.Sync()
}

// syncDirectory makes a new name durable. Not every file system can.
func syncDirectory(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
