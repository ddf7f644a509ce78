package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/comm/files/internal/newfile"
	"pinwheel/comm/files/internal/place"
	"pinwheel/internal/outfile"
)

// folder is a directory at the destination. Whoever opens it, and every file that is written in it, holds it open.
type folder struct {
	root   *os.Root
	dir    *os.File // the directory itself
	device uint64
	place  files.ETag // which directory it is, as the server says it
	path   string     // as the user knows it
	made   bool       // by this copy
	users  atomic.Int32
	// left are partial files that earlier copies left here, by the name that they would have got.
	left map[string][]string
}

// newFolder takes root over, for one user. If it fails, it closes root.
func newFolder(root *os.Root, path string) (*folder, error) {
	d := &folder{root: root, path: path}
	d.users.Store(1)
	var st unix.Stat_t
	dir, err := root.Open(".")
	if err == nil {
		d.dir = dir
		err = unix.Fstat(int(dir.Fd()), &st)
	}
	if err != nil {
		d.drop()
		return nil, d.fault("", err)
	}
	d.device, d.place = st.Dev, files.ETag(place.Of(st.Dev, st.Ino))
	return d, nil
}

func (d *folder) hold() { d.users.Inc() }

func (d *folder) drop() {
	if d.users.Dec() > 0 {
		return
	}
	d.root.Close() // nothing is written through either
	if d.dir != nil {
		d.dir.Close()
	}
}

// openFolder opens a directory that a user has named, also by a symbolic link.
func openFolder(path string) (*folder, error) {
	root, err := os.OpenRoot(path + "/") // with the slash it fails for a FIFO, and does not wait for who writes there
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, outfile.Cause(err))
	}
	d, err := newFolder(root, path)
	if err != nil {
		return nil, err
	}
	return d.look()
}

// look finds what earlier copies left. If it fails, it drops d.
func (d *folder) look() (*folder, error) {
	names, err := d.dir.Readdirnames(-1)
	if err != nil {
		d.drop()
		return nil, d.fault("", err)
	}
	for _, n := range names {
		if m := partialPattern.FindStringSubmatch(n); m != nil && m[2] != newKey {
			if d.left == nil {
				d.left = map[string][]string{}
			}
			d.left[m[1]] = append(d.left[m[1]], n)
		}
	}
	return d, nil
}

// errSamePlace says that a tree would be copied to itself.
var errSamePlace = errors.New("is where the copy goes, so it is left out")

// notInto fails if a directory, which has a name for the user, is the one into which all is copied: that would have no
// end.
func notInto(top, source files.ETag, name string) error {
	if top != "" && top == source {
		return fmt.Errorf("%s: %w", name, errSamePlace)
	}
	return nil
}

// clear removes partial files of a target that are of other versions than key, unless somebody writes them.
func (d *folder) clear(target, key string) {
	own := partialName(target, key)
	m := partialPattern.FindStringSubmatch(own)
	for _, n := range d.left[m[1]] {
		if n != own {
			newfile.Abandon(d.dir, n, time.Time{})
		}
	}
}

// replaceable fails if a copy must not take the place of what has a name.
func (d *folder) replaceable(name string) error {
	if _, err := newfile.Replaceable(int(d.dir.Fd()), name); err != nil {
		return d.fault(name, err)
	}
	return nil
}

// enter makes a directory in d, unless there is one, and opens it. Its owner may write there until all is there.
func (d *folder) enter(name string, mode fs.FileMode) (*folder, error) {
	err := d.root.Mkdir(name, mode.Perm()|0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, d.fault(name, err)
	}
	made := err == nil
	// A link would lead elsewhere, though never out of the destination.
	if have, err := d.root.Lstat(name); err != nil || !have.IsDir() {
		return nil, d.fault(name, orElse(err, errors.New("is in the way of a directory")))
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, d.fault(name, err)
	}
	in, err := newFolder(root, filepath.Join(d.path, name))
	if err != nil {
		return nil, err
	}
	if in.made = made; made {
		return in, nil
	}
	return in.look()
}

// sync makes the names in the directory durable.
func (d *folder) sync() error { return d.fault("", d.dir.Sync()) }

// syncAll makes all that was written to the file system of the directory durable.
func (d *folder) syncAll() error { return d.fault("", unix.Syncfs(int(d.dir.Fd()))) }

// fault says where an error happened. nil stays nil.
func (d *folder) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", d.fullName(name), outfile.Cause(err))
}

// fullName is what the user calls something in the directory.
func (d *folder) fullName(name string) string { return filepath.Join(d.path, name) }

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// checkName refuses names of directory entries that are none. A server may be hostile.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("the other end names a file %q, which is no name", name)
	case len(name) > unix.NAME_MAX:
		return fmt.Errorf("the other end names a file of %d bytes, which is no name", len(name))
	}
	return nil
}
