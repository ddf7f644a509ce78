package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"pinwheel/comm/files"
)

// PutFrom copies what r has, up to its end, to the file name of a server, where it appears when all of it is there,
// verified and durable. r can be read once: nothing is resumed or tried again. If ctx ends first, r may be read for
// longer.
func PutFrom(ctx context.Context, c *files.Client, r io.Reader, name string, o Options) (Result, error) {
	err := o.EnsureDefaults()
	if err == nil {
		err = writable(c)
	}
	if err != nil {
		return Result{}, err
	}
	target := remoteName(name)
	have, err := c.Stat(ctx, target)
	switch {
	case strings.HasSuffix(name, "/") || err == nil && have.IsDir():
		return Result{}, fmt.Errorf("%s is a directory: say what the file is to be called there", target)
	case errors.Is(err, fs.ErrNotExist):
		err = o.ensureRemote(ctx, c, path.Dir(target))
	}
	if err != nil {
		return Result{}, err
	}
	u, err := c.Create(ctx, target, files.CreateOptions{})
	if err != nil {
		return Result{}, err
	}
	n, err := sendAll(ctx, r, u, &o)
	if err != nil {
		abort(ctx, u)
		return Result{}, err
	}
	o.Meter.Files.Inc()
	return Result{Files: 1, Bytes: n}, nil
}

// streamBlock is what is read at a time: enough for several messages to be under way.
const streamBlock = 2 << 20 // 2 MiB

// block is a part of a stream, or its end.
type block struct {
	b   []byte
	err error // io.EOF at the end
}

// sendAll completes an upload with what r has, and returns how much that is.
func sendAll(ctx context.Context, r io.Reader, u *files.Upload, o *Options) (size int64, err error) {
	h, err := o.Verify.New()
	if err != nil {
		return 0, err
	}
	sum := hashed{h}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks := readAhead(ctx, r)
	for {
		var next block
		select {
		case next = <-blocks:
		case <-ctx.Done():
			return size, context.Cause(ctx)
		}
		_, _ = sum.Write(next.b) // hashes don't fail
		n, err := u.WriteAt(ctx, next.b, size)
		size += int64(n)
		o.Meter.Bytes.Add(int64(n))
		o.Meter.TotalBytes.Add(int64(n)) // nobody knows how much there will be
		if err == nil {
			err = next.err
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return size, err
		}
	}
	var mine []byte
	if sum.Hash != nil {
		mine = sum.Sum(nil)
	}
	_, err = u.Commit(ctx, size, o.Verify, mine)
	return size, err
}

// readAhead reads the next block while one is sent, until ctx ends.
func readAhead(ctx context.Context, r io.Reader) <-chan block {
	blocks := make(chan block)
	go func() {
		for {
			b := make([]byte, streamBlock)
			n, err := io.ReadFull(r, b)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			select {
			case blocks <- block{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return blocks
}
