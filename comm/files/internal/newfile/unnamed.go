package newfile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// procLinks tells whether files that are open have names in /proc.
var procLinks = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// Create makes a file in a directory that has no name, by O_TMPFILE of open(2): whoever is killed leaves nothing. Its
// permissions are perm within the umask. It fails with errors.ErrUnsupported where a file can't be without a name, or
// could not get one later.
func Create(dir *os.File, perm fs.FileMode) (*os.File, error) {
	if !procLinks() {
		return nil, errors.ErrUnsupported
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(perm.Perm()))
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), dir.Name()), nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return nil, errors.ErrUnsupported
	}
	return nil, err
}

// noEmptyPath is set once AT_EMPTY_PATH has not helped: before Linux 6.10 it needs CAP_DAC_READ_SEARCH.
var noEmptyPath atomic.Bool

// link gives a file of Create a name. It fails with EEXIST if something has that: linkat(2) replaces nothing, and
// follows no link.
func link(f *os.File, dir int, name string) error {
	if !noEmptyPath.Load() {
		// This saves the way through /proc, which takes longer than all else.
		err := unix.Linkat(int(f.Fd()), "", dir, name, unix.AT_EMPTY_PATH)
		if err == nil || errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	own := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, own, dir, name, unix.AT_SYMLINK_FOLLOW)
	if err == nil {
		noEmptyPath.Store(true)
	}
	return err
}

// Link gives a file of Create its name in a directory. It fails with EEXIST if something has that.
func Link(f, dir *os.File, name string) error { return link(f, int(dir.Fd()), name) }

// Replace gives a file of Create its name in a directory, in place of what has it. there says that something most likely
// does. For that the file needs another name for a moment, which temporary returns, and which stays if this process is
// killed then.
func Replace(f, dir *os.File, name string, there bool, temporary func() string) error {
	to := int(dir.Fd())
	if !there {
		if err := link(f, to, name); !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	other := temporary()
	if err := link(f, to, other); err != nil {
		return err
	}
	if err := unix.Renameat(to, other, to, name); err != nil {
		return errors.Join(err, unix.Unlinkat(to, other, 0))
	}
	return nil
}

// SetModTime sets the modification time of an open file, which needs no name (Linux 5.8). A zero time leaves it.
func SetModTime(f *os.File, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	modified, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}
	return os.NewSyscallError("utimensat", unix.UtimesNanoAt(int(f.Fd()), "", times, unix.AT_EMPTY_PATH))
}
