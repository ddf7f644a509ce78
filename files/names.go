package files

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"pinwheel/files/internal/wire"
)

// SmallBytes is the size of the largest file that comes inside of an answer: see Client.ReadMany.
const SmallBytes = wire.MaxSmall

// valid refuses names that no file has.
func valid(op, name string) error {
	if err := checkName(name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// infoOf takes an Info of the server, which may lie: a name with a slash would lead a program astray.
func infoOf(m *wire.Info) (Info, error) {
	if m.Name != "." && (!fs.ValidPath(m.Name) || strings.ContainsAny(m.Name, "/\x00")) {
		return Info{}, fmt.Errorf("%w: a file called %q", ErrProtocol, m.Name)
	}
	return Info{m.Name, m.Size, fs.FileMode(m.Mode), time.Unix(0, m.ModNs), ETag(m.ETag)}, nil
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
		var dir wire.Opened
		if _, err := c.call(ctx, wire.ProcOpen, op, name, &wire.Name{Name: name, Dir: true}, &dir); err != nil {
			yield(Info{}, err)
			return
		}
		defer c.closeHandle(dir.Handle)
		for {
			var page wire.Page
			if _, err := c.call(ctx, wire.ProcList, op, name, &wire.Handle{Handle: dir.Handle}, &page); err != nil {
				yield(Info{}, err)
				return
			}
			for k := range page.Entries {
				if i, err := infoOf(&page.Entries[k]); !yield(i, err) || err != nil {
					return
				}
			}
			if len(page.Entries) == 0 {
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

// Mkdir makes a directory and those above it that are missing. It succeeds if the directory exists.
func (c *Client) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	const op = "mkdir"
	if err := valid(op, name); err != nil {
		return err
	}
	q := wire.Create{Name: name, Perm: uint32(perm.Perm())}
	_, err := c.call(ctx, wire.ProcMkdir, op, name, &q, &wire.Empty{})
	return err
}

const (
	batchNames = 64 // of one request
	batches    = 4  // that are under way
)

// batch is a part of the names of ReadMany.
type batch struct {
	names   []string
	answers chan answer
}

// answer has what the server said of some names, or why it says no more.
type answer struct {
	files []wire.Content
	err   error
}

// ReadMany reads whole small files, many with one request, and several requests at a time. It calls got for each name
// once, in the order of names and from one goroutine: with the content, which is valid until got returns, or with an
// error. That is ErrNotSmall for a file of more than SmallBytes, and ErrChecksum for a content that does not have the
// checksum of the kind verify. ReadMany ends with the first error of got, of ctx or of the connection.
func (c *Client) ReadMany(
	ctx context.Context, names []string, verify Sum, got func(i int, info Info, content []byte, err error) error,
) error {
	if _, err := verify.New(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var going []*batch
	rest := names
	for i := 0; i < len(names); {
		for len(going) < batches && len(rest) > 0 {
			n := min(batchNames, len(rest))
			b := &batch{names: rest[:n], answers: make(chan answer)}
			going, rest = append(going, b), rest[n:]
			go c.readBatch(ctx, b, verify)
		}
		b := going[0]
		going = going[1:]
		for end := i + len(b.names); i < end; {
			var a answer
			select {
			case a = <-b.answers:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if a.err != nil {
				return a.err
			}
			for k := range a.files {
				info, err := c.settle(names[i], &a.files[k], verify)
				if err = got(i, info, a.files[k].Content, err); err != nil {
					return err
				}
				i++
			}
		}
	}
	return nil
}

// settle returns what ReadMany says of a file.
func (c *Client) settle(name string, f *wire.Content, verify Sum) (Info, error) {
	if f.Status.Code != 0 {
		return Info{}, errorOf("read", name, &f.Status)
	}
	info, err := infoOf(&f.Info)
	if err != nil {
		return info, err
	}
	c.read.Add(int64(len(f.Content)))
	if h, _ := verify.New(); h != nil { // ReadMany has made sure that it does not fail
		h.Write(f.Content)
		if !bytes.Equal(h.Sum(nil), f.Sum) {
			return info, &fs.PathError{Op: "read", Path: name, Err: ErrChecksum}
		}
	}
	return info, nil
}

// readBatch asks for files until the server has said something of each.
func (c *Client) readBatch(ctx context.Context, b *batch, verify Sum) {
	names := b.names
	for len(names) > 0 {
		var a answer
		if err := checkName(names[0]); err != nil { // the server would refuse the whole request
			a.files = []wire.Content{{Status: *statusOf(err)}}
		} else {
			ask := slices.IndexFunc(names, func(n string) bool { return checkName(n) != nil })
			if ask < 0 {
				ask = len(names)
			}
			var contents wire.Contents
			q := wire.Names{Names: names[:ask], Kind: string(verify)}
			_, a.err = c.call(ctx, wire.ProcReadMany, "read", names[0], &q, &contents)
			a.files = contents.Files
			if k := len(a.files); a.err == nil && (k == 0 || k > ask) {
				a.err = fmt.Errorf("%w: %d answers to %d names", ErrProtocol, k, ask)
			}
		}
		select {
		case b.answers <- a:
		case <-ctx.Done():
			return
		}
		if a.err != nil {
			return
		}
		names = names[len(a.files):]
	}
}
