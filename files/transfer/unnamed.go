package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// procLinks tells whether files that are open have names in /proc.
var procLinks = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// createUnnamed begins to write a file that has no name until it is complete, by O_TMPFILE of open(2): whoever is killed
// leaves nothing. Where that can't be, it has the name of a partial file that nobody resumes.
func (d *folder) createUnnamed(target string, mode fs.FileMode) (*partial, error) {
	if procLinks() {
		fd, err := unix.Openat(int(d.dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(mode.Perm()|0o600))
		switch {
		case err == nil:
			return &partial{folder: d, target: target, file: os.NewFile(uintptr(fd), target), mode: mode.Perm()}, nil
		case !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL):
			return nil, d.fault(target, err)
		}
	}
	return d.create(target, newKey, mode, false)
}

// link gives a file without a name that of its target or, where a file is there already, one to be renamed from:
// linkat(2) replaces nothing. It follows no link.
func (p *partial) link() error {
	if p.name != "" {
		return nil
	}
	own, dir := fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()), int(p.folder.dir.Fd())
	err := unix.Linkat(unix.AT_FDCWD, own, dir, p.target, unix.AT_SYMLINK_FOLLOW)
	for range attempts {
		if !errors.Is(err, unix.EEXIST) {
			break
		}
		name := partialName(p.target, fmt.Sprintf("%016x", rand.Uint64()))
		if err = unix.Linkat(unix.AT_FDCWD, own, dir, name, unix.AT_SYMLINK_FOLLOW); err == nil {
			p.name = name
		}
	}
	return err
}
