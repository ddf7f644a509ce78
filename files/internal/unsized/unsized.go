// Package unsized finds files that do not tell their size, as those of proc(5): they say 0 bytes, and have some.
package unsized

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Err says that a copy by size would be empty.
var Err = fmt.Errorf("%w: it says that it is empty, and is not, as files of /proc: copy it to a file first", unix.EINVAL)

// Check fails with Err for an open file that is said to have size bytes, 0, and has more. Whether it has grown meanwhile
// is for others to find out.
func Check(fd int, size int64) error {
	if size > 0 {
		return nil
	}
	var b [1]byte
	if n, _ := unix.Pread(fd, b[:], 0); n <= 0 { // an error comes again when it is read
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size > 0 {
		return err
	}
	return Err
}
