package jobreport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile"
)

// Dir is a directory for the reports of one job. Its processes hold a lock in it for
// as long as they live: one process of NewDir, or several of JoinDir. A directory without a
// lock was left by processes that were killed; the next process that makes a Dir in the same
// place removes it.
type Dir struct {
	path  string
	owner *os.File
}

const (
	prefix    = "pinwheel-report-"
	ownerName = "running" // the file with the lock
	attempts  = 100       // to make a directory that no other process sweeps before it is locked
)

// NewDir makes a directory in the working directory, which the nodes of a cluster
// usually share, or else in the directory for temporary files. Only the user can
// read it.
func NewDir() (Dir, error) { return somewhere(newDir) }

func somewhere(make func(parent string) (Dir, error)) (Dir, error) {
	wd, err := os.Getwd()
	if err == nil {
		if d, err := make(wd); err == nil {
			return d, nil
		}
	}
	d, err := make(os.TempDir())
	if err != nil {
		err = fmt.Errorf("neither the working directory nor %s (TMPDIR) takes a directory: %w", os.TempDir(),
			outfile.Cause(err)) // whose name nobody has chosen
	}
	return d, err
}

func newDir(parent string) (Dir, error) {
	sweep(parent)
	for range attempts {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return Dir{}, err
		}
		d, err := openDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept
		}
		if err != nil {
			return Dir{}, errors.Join(err, os.Remove(path))
		}
		// On a file system without locks nothing is swept either.
		if d.Last() && d.owns() {
			return d, nil
		}
		_ = d.owner.Close()
	}
	return Dir{}, fs.ErrExist
}

func openDir(path string) (Dir, error) {
	owner, err := os.OpenFile(filepath.Join(path, ownerName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	return Dir{path, owner}, err
}

// lock takes the lock of the directory, unix.LOCK_EX or unix.LOCK_SH, or fails.
func (d Dir) lock(how int) error { return unix.Flock(int(d.owner.Fd()), how|unix.LOCK_NB) }

// Last reports whether no other process has the directory. If it has joined with others, it has
// left them then: of all that call Last at their end, exactly one gets true.
func (d Dir) Last() bool { return d.lock(unix.LOCK_EX) != unix.EWOULDBLOCK }

// owns reports whether the lock is still in the directory.
func (d Dir) owns() bool {
	held, err := d.owner.Stat()
	there, statErr := os.Lstat(d.owner.Name())
	return err == nil && statErr == nil && os.SameFile(held, there)
}

// Path is the name of the directory.
func (d Dir) Path() string { return d.path }

// Pattern is the value for PINWHEEL_STATS; see settings.Expand.
func (d Dir) Pattern() string {
	return filepath.Join(strings.ReplaceAll(d.path, "%", "%%"), "%r.json")
}

// Files returns the reports in the directory.
func (d Dir) Files() (files []string, err error) {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" {
			files = append(files, filepath.Join(d.path, e.Name()))
		}
	}
	return files, err
}

// Remove removes the directory and the reports, unless other processes have joined and live.
func (d Dir) Remove() error {
	if !d.Last() || !d.owns() { // the last one may have removed it since
		return d.owner.Close()
	}
	return errors.Join(remove(d.path), d.owner.Close())
}

// Keep leaves the directory and the reports in place for the user. It returns the
// name of the directory.
func (d Dir) Keep() string {
	_ = os.Remove(d.owner.Name()) // no lock, no sweeping
	_ = d.owner.Close()
	return d.path
}

// ours matches the files in such a directory: the lock, reports, and unfinished
// reports.
var ours = regexp.MustCompile(`^(` + ownerName + `|[^/]*\.json(\.[0-9]+\.partial)?)$`)

// remove removes a directory, unless it contains other files too. The lock goes
// last, so that an interrupted removal can be repeated.
func remove(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ours.MatchString(e.Name()) && e.Name() != ownerName {
			_ = os.Remove(filepath.Join(path, e.Name())) // then the directory can't be removed
		}
	}
	if err := os.Remove(filepath.Join(path, ownerName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) { // another process has seen it without a lock
		return err
	}
	return nil
}

var directoryName = regexp.MustCompile("^" + prefix + "[0-9]+$") // as os.MkdirTemp makes them

// sweep removes the directories of processes that were killed.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent) // what can't be read is not swept
	for _, e := range entries {
		if !e.IsDir() || !directoryName.MatchString(e.Name()) && !isOldJoined(e) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		owner, err := os.OpenFile(filepath.Join(path, ownerName), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(path) // if it is empty: not yet locked, and its process makes another
		}
		if err != nil {
			continue
		}
		if unix.Flock(int(owner.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = remove(path) // or the next one does
		}
		_ = owner.Close()
	}
}
