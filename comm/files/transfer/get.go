package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"pinwheel/comm/files"
	"pinwheel/comm/files/internal/newfile"
	"pinwheel/internal/outfile"
)

// Get copies a file of a server to the local disk: to the file local, or into it if that is a directory. Where local is
// a symbolic link, what it leads to is replaced, which must be there: a get to /dev/stdout by root would change that
// for all. Devices, FIFOs and sockets are not replaced. With Options.Recursive, local becomes a copy of the directory
// name, and is merged with what is there. The error is that which ended the copy; Result counts also then.
func Get(ctx context.Context, c *files.Client, name, local string, o Options) (Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return Result{}, err
	}
	return o.attempts(ctx, c, func(c *files.Client, o Options) (Result, error) { return getOnce(ctx, c, name, local, false, o) })
}

// getOnce is Get until the connection is lost. into says that what is copied goes into the directory local.
func getOnce(ctx context.Context, c *files.Client, name, local string, into bool, o Options) (Result, error) {
	name = remoteName(name)
	info, err := c.Stat(ctx, name)
	if err != nil {
		return Result{}, err
	}
	if into && info.IsDir() {
		local = filepath.Join(local, path.Base(name))
	}
	g := &getter{tree: newTree(ctx, o), client: c}
	defer g.end(nil)
	switch {
	case info.IsDir() && o.Recursive:
		err = g.directory(name, info, local)
	case info.IsDir():
		err = fmt.Errorf("%s is a directory: to get all that is in it, say so with --recursive", name)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", name)
	default:
		err = g.single(name, info, local)
	}
	return g.result(), err
}

// getter copies from a server.
type getter struct {
	*tree
	client  *files.Client
	top     *folder // of a tree
	durable *batch  // small files

	mu   sync.Mutex // protects what follows; a leaf
	made []attributes
}

// single copies one file.
func (g *getter) single(name string, info files.Info, local string) error {
	end := local
	switch have, err := os.Stat(local); {
	case err == nil && have.IsDir():
		end = filepath.Join(local, path.Base(name))
	case strings.HasSuffix(local, "/"):
		if err := g.options.ensureDirectory(local); err != nil {
			return err
		}
		end = filepath.Join(local, path.Base(name))
	case err == nil && !have.Mode().IsRegular(): // nor does a link lead to one
		return fmt.Errorf("%s: %w", local, newfile.ErrNoFile)
	default:
		if end, err = followed(local); err != nil {
			return err
		}
	}
	target := filepath.Base(end)
	d, err := g.parent(end)
	if err != nil {
		return err
	}
	defer d.drop()
	g.options.Meter.TotalBytes.Add(info.Size())
	if have := d.at(target); g.options.Resume && looksSame(have, info) &&
		(!g.options.Compare || g.identical(g.client, d, target, name, info.Size())) {
		g.leave(info.Size())
		return nil
	}
	return g.file(d, name, target)
}

// parent opens the directory that a path is in, or makes it.
func (g *getter) parent(local string) (*folder, error) {
	dir := filepath.Dir(local)
	if g.options.Parents {
		if err := g.options.ensureDirectory(dir); err != nil {
			return nil, err
		}
	}
	return openFolder(dir)
}

// followed returns where a path that is a symbolic link leads to, and another path as it is.
func followed(local string) (string, error) {
	if info, err := os.Lstat(local); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return local, nil // what is wrong shows when it is made
	}
	end, err := filepath.EvalSymlinks(local)
	if err != nil {
		return "", fmt.Errorf("%s leads to nothing that is there: %w", local, outfile.Cause(err))
	}
	return end, nil
}

// file copies a file of any size, again if that changes meanwhile.
func (g *getter) file(d *folder, name, target string) error {
	return g.retry(name, func() error {
		err := g.once(d, name, target, g.options.Resume)
		if errors.Is(err, errWrongPart) {
			g.retries.Inc()
			err = g.once(d, name, target, false)
		}
		return err
	})
}

// errWrongPart says that what an earlier copy left is not what the source has.
var errWrongPart = errors.New("the file that was resumed has another checksum")

func (g *getter) once(d *folder, name, target string, resume bool) (err error) {
	if err := d.replaceable(target); err != nil {
		return err
	}
	f, err := g.client.Open(g.ctx, name)
	if err != nil {
		return err
	}
	defer f.Close() // nothing depends on it
	if err := g.options.allowGrowth(g.ctx, f); err != nil {
		return err
	}
	info := f.Info()
	key := resumeKey(name, info.Size(), string(info.ETag()))
	d.clear(target, key)
	p, err := d.create(target, key, info.Mode(), resume)
	if err != nil {
		return err
	}
	p.modified = info.ModTime()
	s := &sink{partial: p, meter: &g.options.Meter.Bytes}
	resumed := min(p.bytes, info.Size())
	grew := false
	if grew, err = g.receive(s, f); err == nil {
		err = p.commit()
	} else if g.options.Resume && !again(err) && !errors.Is(err, errWrongPart) {
		err = errors.Join(err, p.keep())
	} else {
		err = errors.Join(err, p.discard())
	}
	if err != nil {
		s.move(-s.metered)
		return err
	}
	g.count(info.Size(), resumed)
	if grew {
		g.grew(name)
	}
	return nil
}

// receive completes a partial file. It tells whether the source grew meanwhile.
func (g *getter) receive(s *sink, f *files.File) (grew bool, err error) {
	resumed := s.bytes
	ctx, cancel := context.WithCancel(g.ctx)
	sum := theirs(ctx, f, g.options.Verify) // the server hashes while this end does
	defer func() {
		cancel()
		<-sum.done
	}()
	if err := s.begin(ctx, g.options.Verify); err != nil {
		return false, err
	}
	if err := s.copy(ctx, f); err != nil {
		return false, err
	}
	err = s.compare(sum)
	if resumed > 0 && errors.Is(err, files.ErrChecksum) {
		err = errWrongPart
	}
	if err == nil {
		grew, err = g.options.grew(ctx, f)
	}
	if err == nil {
		err = s.finish()
	}
	return grew, err
}
