// Package unsized finds files that do not tell their size, as those of proc(5): they say 0 bytes, and have some.
package unsized

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Err says that a copy by size would be empty.
var Err = fmt.Errorf("%w: it says that it is empty, and is not, as files of /proc: copy it to a file first",
	unix.EINVAL)

// Check fails with Err for an open file that is said to have size bytes, 0, and has more. Files of other file systems
// than these have grown meanwhile.
func Check(fd int, size int64) error {
	if size > 0 {
		return nil
	}
	var b [1]byte
	if n, _ := unix.Pread(fd, b[:], 0); n <= 0 { // an error comes again when it is read
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC:
		return Err
	}
	return nil
}
