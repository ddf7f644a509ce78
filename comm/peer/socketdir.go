package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile"
	"pinwheel/internal/unixsocket"
)

// socketDir is a directory for a socket that this process has chosen. Its lock tells it from those that processes have
// left that were killed: the next one removes them.
type socketDir struct {
	path string
	lock *os.File
}

const (
	dirPrefix = "pinwheel-" // and the role
	lockName  = "lock"
	// startTime is more than a process takes from making its directory to having its lock.
	startTime = time.Minute
)

// newSocketDir makes a directory for a role, and removes those that were left.
func newSocketDir(role string) (d *socketDir, err error) {
	sweepSocketDirs(os.TempDir(), dirPrefix+role+"-", time.Now())
	d = &socketDir{}
	if d.path, err = os.MkdirTemp("", dirPrefix+role+"-"); err != nil {
		return nil, fmt.Errorf("%s: no directory for a socket can be made there: %w: set TMPDIR to one where it can",
			os.TempDir(), outfile.Cause(err)) // whose name nobody has chosen
	}
	if bytes := len(d.socket()); bytes > unixsocket.MaxPath {
		err := fmt.Errorf("%s: a socket's path there has %d bytes, and may have %d: set TMPDIR to a shorter one",
			os.TempDir(), bytes, unixsocket.MaxPath)
		return nil, errors.Join(err, d.close())
	}
	if d.lock, err = os.OpenFile(filepath.Join(d.path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		err = unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *socketDir) socket() string { return filepath.Join(d.path, "s") }

// close removes the directory. Its lock is held until it is gone.
func (d *socketDir) close() error {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// sweepSocketDirs removes directories of this user whose name begins with a prefix and which nobody has locked.
func sweepSocketDirs(in, prefix string, now time.Time) {
	f, err := os.Open(in)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what it has read counts
	for _, name := range names {
		if path := filepath.Join(in, name); strings.HasPrefix(name, prefix) && ours(path, now) && unlocked(path) {
			_ = os.RemoveAll(path) // another process may do the same
		}
	}
}

// ours tells whether a path is a directory of this user, and older than those of processes that start.
func ours(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < startTime {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// unlocked tells whether nobody has the lock of a directory.
func unlocked(path string) bool {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // it was killed before it made one
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
