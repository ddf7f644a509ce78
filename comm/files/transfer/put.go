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
	"syscall"
	"time"

	"pinwheel/comm/files"
)

// Put copies a local file to a server: to the file name, or into it if that is a directory or ends with a slash. With
// Options.Recursive, the directory name becomes a copy of local, and is merged with what is there. The error is that
// which ended the copy; Result counts also then.
func Put(ctx context.Context, c *files.Client, local, name string, o Options) (Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return Result{}, err
	}
	return o.attempts(ctx, c, func(c *files.Client, o Options) (Result, error) { return putOnce(ctx, c, local, name, false, o) })
}

// putOnce is Put until the connection is lost. into says that what is copied goes into the directory name.
func putOnce(ctx context.Context, c *files.Client, local, name string, into bool, o Options) (Result, error) {
	end, err := filepath.EvalSymlinks(local) // those that the user has named
	if err != nil {
		return Result{}, err
	}
	info, err := os.Stat(end)
	if err != nil {
		return Result{}, err
	}
	p := &putter{tree: newTree(ctx, o), client: c}
	defer p.end(nil)
	err = writable(c)
	switch {
	case err != nil:
	case info.IsDir() && o.Recursive:
		name = remoteName(name)
		if base := filepath.Base(local); into && base != ".." {
			name = path.Join(name, base)
		}
		err = p.directory(end, name, info)
	case info.IsDir():
		err = fmt.Errorf("%s is a directory: to put all that is in it, say so with --recursive", local)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", local)
	default:
		err = p.single(end, name, filepath.Base(local))
	}
	return p.result(), err
}

// writable fails if the server takes no files.
func writable(c *files.Client) error {
	if c.Writable() {
		return nil
	}
	return errors.New("the server takes no files: start it with --allow-write")
}

// putter copies to a server.
type putter struct {
	*tree
	client *files.Client
	top    files.ETag // of a tree: which directory of the server it goes to

	mu   sync.Mutex // protects what follows; a leaf
	made []attributes
}

// single copies one file.
func (p *putter) single(local, name, base string) error {
	target := remoteName(name)
	have, err := p.client.Stat(p.ctx, target)
	if strings.HasSuffix(name, "/") || err == nil && have.IsDir() {
		target = path.Join(target, base)
		have, err = p.client.Stat(p.ctx, target)
	}
	there := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		err = p.options.ensureRemote(p.ctx, p.client, path.Dir(target))
	}
	if err != nil {
		return err
	}
	d, err := openFolder(filepath.Dir(local))
	if err != nil {
		return err
	}
	defer d.drop()
	info, err := d.root.Lstat(filepath.Base(local))
	if err != nil {
		return err
	}
	p.options.Meter.TotalBytes.Add(info.Size())
	source := filepath.Base(local)
	if p.options.Resume && there && looksSame(have, info) &&
		(!p.options.Compare || p.identical(p.client, d, source, target, info.Size())) {
		p.leave(info.Size())
		return nil
	}
	return p.file(d, source, target)
}

// file copies a file of any size, again if that changes meanwhile.
func (p *putter) file(d *folder, name, target string) error {
	return p.retry(name, func() error {
		err := p.once(d, name, target, p.options.Resume)
		if errors.Is(err, errWrongPart) {
			p.retries.Inc()
			err = p.once(d, name, target, false)
		}
		return err
	})
}

// abortTimeout bounds how long a copy that has failed waits for the server to remove what it has of it.
const abortTimeout = 5 * time.Second

func (p *putter) once(d *folder, name, target string, resume bool) error {
	s, err := d.open(name, &p.options.Meter.Bytes)
	if err != nil {
		return err
	}
	defer s.Close()
	o := s.createOptions()
	if resume {
		o.ID = resumeKey(name, s.info.Size(), s.info.ModTime().UTC().Format(time.RFC3339Nano))
	}
	u, err := p.create(target, o)
	if err != nil {
		return err
	}
	grew, err := p.send(s, u)
	if err != nil {
		s.move(-s.moved.Load())
		if resume && !again(err) && !errors.Is(err, errWrongPart) {
			return errors.Join(err, u.Close()) // the server keeps what it has
		}
		abort(p.ctx, u)
		return err
	}
	p.count(s.info.Size(), min(u.Size(), s.info.Size()))
	if grew {
		p.grew(d.fullName(name))
	}
	return nil
}

// abort has the server remove what it has, also after the end of ctx.
func abort(ctx context.Context, u *files.Upload) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_ = u.Abort(ctx) // or the server does, when the connection ends
}

// busyTimeout is how long the server may take to find out that a client was killed, and then some.
const busyTimeout = 15 * time.Second

// create begins an upload. One that goes on waits until the server knows that the client before it is gone.
func (p *putter) create(target string, o files.CreateOptions) (*files.Upload, error) {
	for end := time.Now().Add(busyTimeout); ; {
		u, err := p.client.Create(p.ctx, target, o)
		if o.ID == "" || !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return u, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-p.ctx.Done():
			return nil, context.Cause(p.ctx)
		}
	}
}

// send completes an upload. It tells whether the source grew meanwhile.
func (p *putter) send(s *source, u *files.Upload) (grew bool, err error) {
	ctx, cancel := context.WithCancel(p.ctx)
	sum := inBackground(func() ([]byte, error) { return s.hash(ctx, p.options.Verify) })
	defer func() {
		cancel()
		<-sum.done
	}()
	size := s.info.Size()
	from := min(u.Size(), size)
	s.move(from)
	err = s.data(from, func(off, n int64) error {
		_, err := u.CopyFrom(ctx, s, off, n)
		return err
	})
	if err != nil {
		return false, err
	}
	s.move(size - s.moved.Load()) // what holes were
	mine, err := sum.wait()
	if err == nil {
		grew, err = s.changed(p.options.Strict)
	}
	if err == nil {
		_, err = u.Commit(ctx, size, p.options.Verify, mine)
	}
	if from > 0 && errors.Is(err, files.ErrChecksum) {
		err = errWrongPart
	}
	return grew, err
}
