package newfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrNoFile says that a new file would replace what people write into, such as a device. It has no errno: a client gets
// the text.
var ErrNoFile = errors.New("is no regular file, and is not replaced")

// Replaceable fails with ErrNoFile if a new file must not take the place of what has a name in a directory: a device, a
// FIFO or a socket. Of a symbolic link, only the link is replaced. A directory keeps its place by itself. there tells
// whether something has the name.
func Replaceable(dir int, name string) (there bool, err error) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false, nil // most likely there is nothing
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFLNK, unix.S_IFDIR:
		return true, nil
	}
	return true, ErrNoFile
}
