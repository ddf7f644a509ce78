package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/internal/unixsocket"
)

// FileRangeWriter is an io.Writer that may take bytes from a file without having them in memory, as by
// copy_file_range(2). CopyRange uses it for files of a server on this machine.
type FileRangeWriter interface {
	io.Writer
	// WriteFileRange writes n bytes of f from an offset. As io.Writer does, it returns fewer only with an error. After any
	// error but that, CopyRange writes the rest with Write, which says what is wrong. f is for this call only.
	WriteFileRange(f *os.File, off, n int64) (int64, error)
}

// ownFile is a descriptor that this process has of a file of the server.
type ownFile struct {
	// mu is held while the server is asked for it.
	mu    sync.Mutex
	file  *os.File // nil: there is none
	asked bool     // and closed, or the server gives none
}

func (o *ownFile) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeLocked()
}

func (o *ownFile) closeLocked() {
	o.asked = true
	if o.file != nil {
		_ = o.file.Close() // nothing was written. The kernel closes it after reads that are under way
		o.file = nil
	}
}

// descriptor returns the descriptor of the file, or nil if this process gets none.
func (f *File) descriptor(ctx context.Context) *os.File {
	c, o := f.client, &f.own
	if c.local == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.asked {
		var err error
		o.file, err = f.askDescriptor(ctx)
		o.asked = err == nil || ctx.Err() == nil // what fails, fails again: the window is left
		if c.own.Store(o, true); c.ctx.Err() != nil {
			o.closeLocked() // Close may not have seen it
		}
	}
	return o.file
}

func (f *File) askDescriptor(ctx context.Context) (file *os.File, err error) {
	c := f.client
	e, err := c.dataConn(ctx, c.local, f.name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.drop(e)
		} else {
			e.keep()
		}
	}()
	from := e.Conn.(*net.UnixConn)
	if _, err := ownPeer(from); err != nil {
		return nil, err
	}
	q := wire.Descriptor{Handle: f.handle, Conn: e.number}
	if _, err := c.call(ctx, wire.ProcDescriptor, "read", f.name, &q, &wire.Empty{}); err != nil {
		return nil, err
	}
	if err := from.SetReadDeadline(time.Now().Add(enterTime)); err != nil {
		return nil, err
	}
	fd, err := unixsocket.ReceiveDescriptor(from)
	if err != nil {
		return nil, err
	}
	file = os.NewFile(uintptr(fd), f.name)
	s, err := stampOf(file)
	if err == nil && !f.is(s) { // whoever listens there is not the server
		err = fmt.Errorf("%w: the descriptor is of another file", ErrProtocol)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ownBytes are copied by a descriptor at a time. In between, the server says whether the file has changed.
const ownBytes = 16 << 20 // 16 MiB

// copyOwn writes a range of the file to w, by way of a descriptor.
func (f *File) copyOwn(ctx context.Context, own *os.File, w io.Writer, off, n int64) (copied int64, err error) {
	c := f.client
	to, _ := w.(FileRangeWriter)
	for copied < n && err == nil {
		if ctx.Err() != nil {
			return copied, context.Cause(ctx)
		}
		part := min(n-copied, ownBytes)
		var k int64
		if to != nil {
			if k, err = to.WriteFileRange(own, off+copied, part); k < part {
				to = nil
			}
		}
		if k < part {
			var more int64
			more, err = copyFile(w, own, off+copied+k, part-k)
			k += more
		}
		copied += k
		c.read.Add(k)
		q := wire.Taken{Handle: f.handle, Bytes: k}
		_, said := c.call(ctx, wire.ProcTaken, "read", f.name, &q, &wire.Moved{})
		if said != nil && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
			err = said
		}
		if errors.Is(err, os.ErrClosed) {
			err = cmp.Or(f.usable(0, 0), c.closed(), err)
		}
	}
	return copied, err
}

// copyFile writes a range of a file to w. It fails with io.ErrUnexpectedEOF if the file has fewer bytes.
func copyFile(w io.Writer, from *os.File, off, n int64) (int64, error) {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	copied, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(from, off, n), *b)
	if err == nil && copied < n {
		err = io.ErrUnexpectedEOF
	}
	return copied, err
}
