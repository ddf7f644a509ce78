package files

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"pinwheel/comm/files/internal/wire"
)

// valid refuses names that no file has.
func valid(op, name string) error {
	if err := checkName(name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// infoOf takes an Info of the server, which may lie: a name with a slash would lead a program astray.
func infoOf(m *wire.Info) (Info, error) {
	if strings.Contains(m.Name, "/") || checkName(m.Name) != nil {
		return Info{}, fmt.Errorf("%w: a file called %q", ErrProtocol, m.Name)
	}
	return Info{m.Name, m.Size, fs.FileMode(m.Mode), m.ModTime.Time(), ETag(m.ETag), m.Allocated}, nil
}

// Stat describes a file or directory. Symbolic links are followed.
func (c *Client) Stat(ctx context.Context, name string) (Info, error) {
	const op = "stat"
	if err := valid(op, name); err != nil {
		return Info{}, err
	}
	var a wire.Info
	if _, err := c.call(ctx, wire.ProcStat, op, name, &wire.Name{Name: name}, &a); err != nil {
		return Info{}, err
	}
	return infoOf(&a)
}

// ReadDir returns what a directory has, sorted by name. Symbolic links are not followed.
func (c *Client) ReadDir(ctx context.Context, name string) (all []Info, err error) {
	for i, err := range c.List(ctx, name) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// List returns what a directory has, page by page as the server sends it, in no order. It ends with the first error.
func (c *Client) List(ctx context.Context, name string) iter.Seq2[Info, error] {
	const op = "readdir"
	return func(yield func(Info, error) bool) {
		if err := valid(op, name); err != nil {
			yield(Info{}, err)
			return
		}
		q := wire.List{Name: name}
		defer func() {
			if q.Handle != 0 {
				c.closeHandle(q.Handle)
			}
		}()
		for {
			var page wire.Page
			if _, err := c.call(ctx, wire.ProcList, op, name, &q, &page); err != nil {
				yield(Info{}, err)
				return
			}
			q.Handle = page.Handle
			for k := range page.Entries {
				if i, err := infoOf(&page.Entries[k]); !yield(i, err) || err != nil {
					return
				}
			}
			if q.Handle == 0 {
				return
			}
		}
	}
}

// closeHandle has the server close something, without waiting for that.
func (c *Client) closeHandle(h uint64) {
	// If it fails, the connection is over, and everything closed.
	go func() { _, _ = c.call(c.ctx, wire.ProcClose, "close", "", &wire.Handle{Handle: h}, &wire.Empty{}) }()
}

// Mkdir makes a directory and those above it that are missing. It succeeds if the directory exists, and then made is
// false.
func (c *Client) Mkdir(ctx context.Context, name string, perm fs.FileMode) (made bool, err error) {
	const op = "mkdir"
	if err := valid(op, name); err != nil {
		return false, err
	}
	var a wire.Made
	q := wire.Create{Name: name, Perm: uint32(perm.Perm())}
	_, err = c.call(ctx, wire.ProcMkdir, op, name, &q, &a)
	return a.New, err
}

// Attributes are what SetAttr changes of a directory.
type Attributes struct {
	// Keep are the permissions that it keeps of those that it has: 0o777 changes nothing.
	Keep    fs.FileMode
	ModTime time.Time // zero: as it is
}

// SetAttr changes a directory, when all is in it: whatever is made in a directory sets its time, and needs the
// permission to. It fails with ENOTDIR for a file, which gets its attributes with CreateOptions.
func (c *Client) SetAttr(ctx context.Context, name string, a Attributes) error {
	const op = "setattr"
	if err := valid(op, name); err != nil {
		return err
	}
	q := wire.SetAttr{Name: name, Keep: uint32(a.Keep.Perm()), ModTime: wire.TimeOf(a.ModTime)}
	_, err := c.call(ctx, wire.ProcSetAttr, op, name, &q, &wire.Empty{})
	return err
}
