package outfile

import (
	"cmp"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stdout is the name of standard output.
const stdout = "-"

// ToStdout reports whether what Create would write under this name goes to
// standard output, so that nothing else should.
func ToStdout(path string) bool {
	if path == stdout {
		return true
	}
	end, err := resolve(path)
	fd, own := ownDescriptor(end)
	return err == nil && own && fd == 1
}

// Check returns the error that Create would, as far as that can be known
// without waiting for anybody. Nothing is left of it.
func Check(path string) error {
	f := &File{path: path}
	target, have, err := f.find()
	fd, own := ownDescriptor(target)
	switch {
	case err != nil || path == stdout:
	case own:
		_, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	case descriptors.MatchString(target) || have != nil && !have.Mode().IsRegular():
		err = mayWrite(target)
	default:
		err = f.create(target, have)
	}
	return cmp.Or(f.fault(err), f.Discard())
}

// open finds out what the name stands for, and opens it.
func (f *File) open() error {
	if f.path == stdout {
		f.out, f.shared = os.Stdout, true
		return nil
	}
	target, have, err := f.find()
	if err != nil {
		return err
	}
	if fd, own := ownDescriptor(target); own {
		return f.duplicate(fd)
	}
	if descriptors.MatchString(target) || have != nil && !have.Mode().IsRegular() {
		return f.through(target)
	}
	return f.create(target, have)
}

// find resolves the name and looks at what is there, nil if nothing is.
func (f *File) find() (target string, have fs.FileInfo, err error) {
	switch f.path {
	case "":
		return "", nil, errors.New("a file has no name")
	case stdout:
		return "", nil, nil
	}
	if target, err = resolve(f.path); err != nil {
		return "", nil, err
	}
	have, err = os.Stat(target)
	switch {
	case descriptors.MatchString(target):
		return target, nil, nil // duplicating or opening it will tell
	case errors.Is(err, fs.ErrNotExist) && !os.IsPathSeparator(target[len(target)-1]):
		return target, nil, nil
	case errors.Is(err, fs.ErrNotExist) || err == nil && have.IsDir():
		return "", nil, unix.EISDIR
	case err == nil && have.Mode().IsRegular():
		err = mayWrite(target) // renaming would not ask
	}
	return target, have, err
}

func mayWrite(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
}

// maxLinks is how many symbolic links are followed, as the kernel has it
// (path_resolution(7)).
const maxLinks = 40

// resolve follows symbolic links to what the name stands for, even if that is
// not there. It stops at the links of /proc to open files, which have no name.
func resolve(path string) (string, error) {
	for range maxLinks {
		dir, base := filepath.Split(path) // not filepath.Dir: a .. belongs to where the link before it leads
		if base == "" {
			return path, nil // a directory, or there is none
		}
		dir, err := filepath.EvalSymlinks(cmp.Or(dir, "."))
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil // it will be made
		}
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, base)
		if descriptors.MatchString(path) {
			return path, nil
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() != fs.ModeSymlink {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = dir + "/" + to
		}
		path = to
	}
	return "", unix.ELOOP
}

// descriptors matches the names of open files of a process, proc_pid_fd(5).
var descriptors = regexp.MustCompile(`^/proc/(\d+)/(?:task/\d+/)?fd/(\d+)$`)

// ownDescriptor returns the descriptor of this process that the name stands for.
func ownDescriptor(path string) (fd int, own bool) {
	m := descriptors.FindStringSubmatch(path)
	if self, err := os.Readlink("/proc/self"); m == nil || err != nil || m[1] != self {
		return 0, false
	}
	fd, err := strconv.Atoi(m[2])
	return fd, err == nil
}

// duplicate writes on where the descriptor is. To open the file under it
// anew would begin at its first byte, over what others have written there.
func (f *File) duplicate(fd int) error {
	d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	f.out = os.NewFile(uintptr(d), f.path)
	return nil
}

// through writes to what is no regular file.
func (f *File) through(target string) (err error) {
	flags := os.O_WRONLY
	if f.noWait {
		flags |= unix.O_NONBLOCK
	}
	f.out, err = os.OpenFile(target, flags, 0)
	if f.noWait && errors.Is(err, unix.ENXIO) {
		return errors.New("nobody reads it")
	}
	return err
}

const (
	attempts     = 100 // to find a name and a directory that other processes neither take nor remove
	maxBaseBytes = 200 // of a name, for the partial one to fit into NAME_MAX, 255 of <linux/limits.h>
)

// create opens what will replace the file at target, which have describes if it is there.
func (f *File) create(target string, have fs.FileInfo) error {
	f.target = target
	f.await()
	dir, base := filepath.Split(target)
	prefix := dir + base[:min(len(base), maxBaseBytes)] + "."
	var err error
	for range attempts {
		err = f.openStage(prefix + strconv.FormatUint(uint64(rand.Uint32()), 10) + ".partial")
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if have == nil {
		return err
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return f.openUnnamed()
	}
	if err == nil {
		keepOwnerAndMode(f.out, have)
	}
	return err
}

func (f *File) openStage(name string) error {
	pending.Lock() // a signal comes before it is there, or finds it
	defer pending.Unlock()
	if err := f.makeDirectories(filepath.Dir(name)); err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err == nil {
		f.out, f.stage = out, name
	}
	return err
}

// openUnnamed gathers the content where it has no name, for a file in a
// directory that is closed.
func (f *File) openUnnamed() error {
	out, err := os.CreateTemp("", "pinwheel-*.partial")
	if err != nil {
		return err
	}
	f.out = out
	return os.Remove(out.Name())
}

// makeDirectories makes those that are missing, and notes which. The caller
// holds pending.
func (f *File) makeDirectories(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeDirectories(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o777)
	}
	if err == nil {
		f.made = append(f.made, dir)
		return nil
	}
	if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// keepOwnerAndMode makes the new file as the old one was, as far as this user may.
func keepOwnerAndMode(out *os.File, have fs.FileInfo) {
	if st, ok := have.Sys().(*syscall.Stat_t); ok {
		_ = out.Chown(int(st.Uid), -1)
		_ = out.Chown(-1, int(st.Gid))
	}
	_ = out.Chmod(have.Mode().Perm())
}
