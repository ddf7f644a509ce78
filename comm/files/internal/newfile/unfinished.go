package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrInTheWay says that something has the name of an unfinished file and is none.
	ErrInTheWay = errors.New("is in the way")
	// errTaken says that others complete or remove an unfinished file all the time.
	errTaken = fmt.Errorf("%w: others complete or remove it all the time", syscall.EBUSY)
	// errGone says that what had a name has it no more.
	errGone = errors.New("it is gone")
)

// attempts is how often others may complete or remove an unfinished file while it is opened.
const attempts = 100

// careful are flags for a name that somebody else may have given to a FIFO, a terminal or a symbolic link.
const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// Continue opens the unfinished file of a name in a directory, or makes it. lock keeps others from the file while it is
// open, or fails. Continue fails with that error, and with ErrInTheWay.
//
// Others may write to the directory, and backups make hard links of what is there. So what is found is continued only
// if it belongs to this user and has no other name. Another regular file keeps its bytes, and loses this name.
func Continue(dir *os.File, name string, perm fs.FileMode, lock func(*os.File) error) (*os.File, error) {
	in := int(dir.Fd())
	for range attempts {
		f, made, err := open(in, name, perm)
		if err == nil {
			if err = lock(f); err == nil {
				err = check(in, name, f, made)
			}
			if err == nil {
				return f, nil
			}
			f.Close()
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
	return nil, errTaken
}

// open makes a file, or opens the regular one that has the name.
func open(dir int, name string, perm fs.FileMode) (f *os.File, made bool, err error) {
	// What is made is a regular file. With O_NONBLOCK, package os would try whether it can be waited for.
	fd, err := openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, perm)
	if made = err == nil; errors.Is(err, unix.EEXIST) {
		var st unix.Stat_t
		if err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			err = regular(name, &st) // to open a device may do something
		}
		if err == nil {
			fd, err = openat(dir, name, unix.O_RDWR|careful, 0)
		}
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP):
			err = errGone
		case errors.Is(err, unix.EACCES):
			err = inTheWay(name, "it belongs to user %d: %w", st.Uid, err)
		}
	}
	if err != nil {
		return nil, false, err
	}
	return os.NewFile(uintptr(fd), name), made, nil
}

// openat is that of the kernel, again if a signal ends it: some network file systems, and those of FUSE, allow that.
func openat(dir int, name string, flags int, perm fs.FileMode) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, name, flags, uint32(perm.Perm()))
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// check fails with errGone for a file that does not have its name, or may not have it.
func check(dir int, name string, f *os.File, made bool) error {
	var own, now unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &own); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	err := unix.Fstatat(dir, name, &now, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && (own.Dev != now.Dev || own.Ino != now.Ino) {
		return errGone // whoever had the lock has given the file its final name
	}
	if err != nil {
		return os.NewSyscallError("fstatat", err)
	}
	if err := regular(name, &own); err != nil {
		return err
	}
	why := ""
	switch {
	case own.Nlink > 1:
		why = "it is a link to a file that has another name, too"
	case !made && int(own.Uid) != os.Geteuid(): // some file systems give all files to one user
		why = fmt.Sprintf("it belongs to user %d", own.Uid)
	default:
		return nil
	}
	if err := unix.Unlinkat(dir, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return inTheWay(name, "%s, and can't be removed: %w", why, err)
	}
	return errGone
}

func regular(name string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return inTheWay(name, "it is no regular file")
	}
	return nil
}

func inTheWay(name, why string, args ...any) error {
	return fmt.Errorf("%s %w: "+why, append([]any{name, ErrInTheWay}, args...)...)
}

// Abandon removes an unfinished file that nobody has locked, if its inode has not changed since a time. The zero time
// stands for any. What can't be removed costs room, and nothing else.
func Abandon(dir *os.File, name string, since time.Time) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|careful, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	abandon(int(dir.Fd()), name, fd, since)
}

// abandon is Abandon of what had the name when it was opened.
func abandon(dir int, name string, fd int, since time.Time) {
	var st unix.Stat_t
	// Not by the time of the last modification: a commit sets that of its source before the file has its name.
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		!since.IsZero() && time.Unix(st.Ctim.Unix()).After(since) {
		return
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	// Whoever had the lock may have given the file its final name, and somebody else this name to another file.
	var now unix.Stat_t
	if unix.Fstatat(dir, name, &now, unix.AT_SYMLINK_NOFOLLOW) == nil && now.Dev == st.Dev && now.Ino == st.Ino {
		_ = unix.Unlinkat(dir, name, 0) // the lock is held until the name is gone
	}
}
