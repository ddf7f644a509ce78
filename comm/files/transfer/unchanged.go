package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
)

// looksSame tells whether what is there, if that is not nil, is a file that may be left alone: at once, or after a look
// at its checksum.
func looksSame(have, info fs.FileInfo) bool {
	return have != nil && have.Mode().IsRegular() && same(have, info)
}

// leave counts a file that is left alone.
func (t *tree) leave(bytes int64) {
	t.unchanged.Inc()
	t.options.Meter.Bytes.Add(bytes)
}

// at describes what has a name in the directory; nil if nothing has. Nothing is in one that this copy has made.
func (d *folder) at(name string) fs.FileInfo {
	if d.made {
		return nil
	}
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil // what is wrong shows when it is written
	}
	return info
}

// reopen opens a file that is there, to read it.
func (d *folder) reopen(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}

// holds tells whether a file has just this content.
func (d *folder) holds(name string, content []byte) bool {
	f, err := d.reopen(name)
	if err != nil {
		return false
	}
	defer f.Close() // it was read
	b := make([]byte, len(content)+1)
	n, err := io.ReadFull(f, b)
	return errors.Is(err, io.ErrUnexpectedEOF) && bytes.Equal(b[:n], content) || n == 0 && len(content) == 0
}

// identical tells whether a file here and one of the server, which have the same size, have the same checksum. What
// fails is found again when the file is copied.
func (t *tree) identical(c *files.Client, d *folder, name, remote string, size int64) bool {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	f, err := c.Open(ctx, remote)
	if err != nil || f.Info().Size() != size {
		return false
	}
	defer f.Close() // it was read
	theirs := theirs(ctx, f, t.options.Verify)
	defer func() { cancel(); <-theirs.done }()
	local, err := d.reopen(name)
	if err != nil {
		return false
	}
	defer local.Close() // it was read
	h, err := t.options.Verify.New()
	if err != nil || hashFile(ctx, h, local, size) != nil {
		return false
	}
	return hashed{h}.compare(theirs) == nil
}
