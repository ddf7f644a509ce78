package jobreport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// joinedPrefix begins the names of directories that several processes share.
const joinedPrefix = prefix + "of-"

// JoinDir is NewDir for processes that start one rank each: those that name the same step, and
// see the same directory, get the same Dir. The last of them to end makes the report; see Last.
// It fails where the file system has no locks.
func JoinDir(step string) (Dir, error) {
	return somewhere(func(parent string) (Dir, error) { return joinDir(parent, step) })
}

// others is how long another process may keep the lock to itself: it sweeps, or it is the last of an
// earlier step and makes the report.
const others = 2 * time.Second

func joinDir(parent, step string) (Dir, error) {
	sweep(parent)
	path := filepath.Join(parent, joinedPrefix+strings.ReplaceAll(step, "/", "-"))
	for end := time.Now().Add(others); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := makePrivate(path); err != nil {
			return Dir{}, err
		}
		d, err := openDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last one has removed it
		}
		if err != nil {
			return Dir{}, err
		}
		if d.lock(unix.LOCK_EX) == nil && d.owns() {
			d.clear() // of a step with the same name that was killed: Slurm repeats jobs
		}
		err = d.lock(unix.LOCK_SH)
		if err == nil && d.owns() {
			return d, nil
		}
		_ = d.owner.Close()
		if err != nil && err != unix.EWOULDBLOCK {
			return Dir{}, os.NewSyscallError("flock", err)
		}
	}
	return Dir{}, os.ErrDeadlineExceeded
}

// makePrivate makes a directory that nobody else can read, or fails if there is one that is not.
func makePrivate(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	var s unix.Stat_t
	err := unix.Lstat(path, &s)
	if err == nil && (int(s.Uid) != os.Geteuid() || s.Mode&(unix.S_IFMT|0o077) != unix.S_IFDIR) {
		return &fs.PathError{Op: "join", Path: path, Err: fs.ErrPermission}
	}
	if err == unix.ENOENT { // removed since
		err = nil
	}
	return err
}

// clear removes the reports.
func (d Dir) clear() {
	files, _ := d.Files() // what can't be read stays
	for _, file := range files {
		_ = os.Remove(file)
	}
}

// oldAfter is more than the moment in which the last process has no lock.
const oldAfter = time.Hour

// isOldJoined reports whether a directory is a shared one in which nothing has happened for long.
func isOldJoined(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && strings.HasPrefix(e.Name(), joinedPrefix) && time.Since(info.ModTime()) > oldAfter
}
