package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"pinwheel/comm/files"
	"pinwheel/internal/outfile"
)

// GetAll is Get of several names, each of which goes into the directory local. A name may be a pattern, as path.Match
// has it, in which * matches no dot at the beginning of a name; a name that is there stands for itself. One name that
// is no pattern is that of Get. What can't be copied is told to Options.Failed, and the others are copied.
func GetAll(ctx context.Context, c *files.Client, names []string, local string, o Options) (Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return Result{}, err
	}
	if len(names) == 1 && !isPattern(names[0]) {
		return Get(ctx, c, names[0], local, o)
	}
	return o.attempts(ctx, c, func(c *files.Client, o Options) (r Result, err error) {
		if err := o.ensureDirectory(local); err != nil {
			return r, err
		}
		var all []string
		for _, name := range names {
			found, err := expand(ctx, c, remoteName(name))
			if all = append(all, found...); err == nil {
				continue
			}
			if err := r.failed(err, &o); err != nil {
				return r, err
			}
		}
		return r, r.each(all, local, &o, func(name string) (Result, error) {
			return getOnce(ctx, c, name, local, true, o)
		})
	})
}

// PutAll is Put of several files and directories, each of which goes into the directory name of the server. What can't
// be copied is told to Options.Failed, and the others are copied.
func PutAll(ctx context.Context, c *files.Client, locals []string, name string, o Options) (Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return Result{}, err
	}
	if len(locals) == 1 {
		return Put(ctx, c, locals[0], name, o)
	}
	return o.attempts(ctx, c, func(c *files.Client, o Options) (r Result, err error) {
		if err := writable(c); err != nil {
			return r, err
		}
		name := remoteName(name)
		if err := o.ensureRemote(ctx, c, name); err != nil {
			return r, err
		}
		return r, r.each(locals, name, &o, func(local string) (Result, error) {
			return putOnce(ctx, c, local, name, true, o)
		})
	})
}

// each copies one source after the other into a directory, and adds up what that has done.
func (r *Result) each(sources []string, to string, o *Options, copyOne func(string) (Result, error)) error {
	from := map[string]string{}
	for _, s := range sources {
		base := path.Base(path.Clean(s))
		if before, taken := from[base]; taken {
			return fmt.Errorf("%s and %s would both be %s", before, s, path.Join(to, base))
		}
		from[base] = s
	}
	for _, s := range sources {
		one, err := copyOne(s)
		r.plus(one)
		if err != nil {
			if err := r.failed(err, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed counts a source that can't be copied. It fails if the others would fail in the same way.
func (r *Result) failed(err error, o *Options) error {
	if fatal(err) {
		return err
	}
	r.Failed++
	o.Failed(err)
	return nil
}

// plus adds what was done for another source.
func (r *Result) plus(s Result) {
	r.Files += s.Files
	r.Directories += s.Directories
	r.Bytes += s.Bytes
	r.ResumedBytes += s.ResumedBytes
	r.Unchanged += s.Unchanged
	r.Skipped += s.Skipped
	r.Retries += s.Retries
	r.Grown += s.Grown
	r.Failed += s.Failed
}

// ensureDirectory fails for a path that is no local directory, or makes it.
func (o *Options) ensureDirectory(local string) error {
	if o.Parents {
		if err := os.MkdirAll(local, 0o777); err != nil {
			return fmt.Errorf("%s: %w", local, outfile.Cause(err))
		}
	}
	if info, err := os.Stat(local); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: there is no such directory (--parents makes it)", local)
	}
	return nil
}

// ensureRemote fails for a name that is no directory of the server, or makes it.
func (o *Options) ensureRemote(ctx context.Context, c *files.Client, name string) error {
	if name == "." {
		return nil
	}
	if o.Parents {
		_, err := c.Mkdir(ctx, name, fs.ModePerm)
		return err
	}
	info, err := c.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s: %w at the server (--parents makes that directory)", name, outfile.Cause(err))
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s: %w", name, syscall.ENOTDIR)
	}
	return err
}
