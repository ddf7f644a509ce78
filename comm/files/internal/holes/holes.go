// Package holes finds the parts of files that were never written.
package holes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Least is the size in bytes of the smallest hole that counts. To read as much takes about as long as to look
// for a hole: a file with many small ones is read as if it had none.
const Least = 16 << 10 // 16 KiB

// maxLooks bounds how long NextData looks for the end of a part. What follows it may be no hole, then.
const maxLooks = 1024

// NextData returns the first part of a file, from an offset to size, that has data and no hole of 2 * Least bytes or
// more (SEEK_DATA and SEEK_HOLE of lseek(2)). Holes of less than Least bytes may be part of it. If there is none, both
// are size. Where the file system knows no holes, all is data. The file's own offset moves. It fails for a file that was
// closed.
func NextData(f *os.File, from, size int64) (begin, end int64, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	err = c.Control(func(fd uintptr) {
		begin, end = part(int(fd), from, size)
		for looks := 1; end < size && looks < maxLooks; looks++ {
			next, until := part(int(fd), end, size)
			if next == size || next-end >= Least {
				return
			}
			end = until
		}
	})
	return begin, end, err
}

// part is NextData that looks once: a hole that begins in the same Least bytes as the data is none.
func part(fd int, from, size int64) (begin, end int64) {
	data, err := unix.Seek(fd, from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size
	case err != nil:
		return from, size
	}
	begin = min(data, size)
	if end = begin - begin%Least + Least; end >= size {
		return begin, size
	}
	hole, err := unix.Seek(fd, end, unix.SEEK_HOLE)
	if err != nil {
		return begin, size
	}
	return begin, min(hole, size)
}
