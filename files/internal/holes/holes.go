// Package holes finds the parts of files that were never written.
package holes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// NextData returns the first part of a file, from an offset to size, that is no hole (SEEK_DATA and SEEK_HOLE of
// lseek(2)). If there is none, both are size. Where the file system knows no holes, all is data. The file's own offset
// moves. It fails for a file that was closed.
func NextData(f *os.File, from, size int64) (begin, end int64, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	begin, end = from, size
	err = c.Control(func(fd uintptr) {
		data, err := unix.Seek(int(fd), from, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			begin = size
			return
		}
		if err != nil {
			return
		}
		if hole, err := unix.Seek(int(fd), data, unix.SEEK_HOLE); err == nil {
			begin, end = min(data, size), min(hole, size)
		}
	})
	return begin, end, err
}
