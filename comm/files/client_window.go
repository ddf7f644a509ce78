package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/comm/vmmc"
)

// Window is memory into which the server sends. It is outside the heap of Go and ends with Close, or with the node.
type Window struct {
	client *Client
	memory []byte
	export *vmmc.Export
	handle uint64 // at the server
	freed  sync.Once
}

// NewWindow exports memory of its own to the server, for File.ReadInto.
func (c *Client) NewWindow(ctx context.Context, bytes int64) (*Window, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("files: a window of %d bytes", bytes)
	}
	id, memory, e, err := export(c.node, bytes, c.opt.Peers)
	if err != nil {
		return nil, err
	}
	w := &Window{client: c, memory: memory, export: e}
	var a wire.Target
	if _, err := c.call(ctx, wire.ProcWindow, "window", "", &wire.Window{Export: id, Bytes: bytes}, &a); err != nil {
		_ = w.free() // what counts is why there is no window
		return nil, err
	}
	w.handle = a.Handle
	c.way.Store(a.Way)
	return w, nil
}

// Bytes returns the memory.
func (w *Window) Bytes() []byte { return w.memory }

// Close takes the memory back. No read into it may be under way.
func (w *Window) Close() error {
	w.client.closeHandle(w.handle)
	return w.free()
}

func (w *Window) free() (err error) {
	w.freed.Do(func() { err = unexport(w.client.node, w.memory, w.export) })
	return err
}

// windowSlots is how many reads may be under way in the window of a client.
const windowSlots = 4

// readSizes are how much CopyRange asks for at a time. Over shared memory it is what caches of processors keep until it
// is taken out. By RDMA it is more: the pipe of a read has to fill first.
var readSizes = map[string]int64{ByMemory: 1 << 20, ByRDMA: longRead, ByTLS: 2 << 20} // 1 MiB, 2 MiB

const longRead = 8 << 20 // 8 MiB

const minRead = 256 << 10 // 256 KiB: less is not worth a request of its own

// readSize returns how much of n bytes one read asks for: less than all, so that the first bytes are used while others
// are on their way.
func (c *Client) readSize(n int64) int64 {
	most := min(c.slots.bytes, readSizes[c.way.Load()])
	return max(min(most, n/windowSlots&^(minRead-1)), min(minRead, c.slots.bytes))
}

// reading is a read into a slot of the window.
type reading struct {
	at, n int64
	done  chan error
}

// readSlot begins a read into a slot.
func (f *File) readSlot(at, off, n int64) *reading {
	r := &reading{at, n, make(chan error, 1)}
	go func() {
		// It ends with the connection, not with the caller: until it has ended, the server may write into the slot.
		_, err := f.readWindow(f.client.ctx, f.client.window, at, off, n)
		r.done <- err
	}()
	return r
}

// readWindow has the server send a range of the file to a window.
func (f *File) readWindow(ctx context.Context, w *Window, at, off, n int64) (int64, error) {
	var a wire.Moved
	q := wire.Read{Handle: f.handle, Off: off, Len: n, Window: w.handle, At: at}
	moved, err := f.client.call(ctx, wire.ProcRead, "read", f.name, &q, &a)
	if err == nil {
		moved = a.Bytes
		f.client.way.Store(a.Way)
		if moved < n { // the client asks for what the file has
			err = &fs.PathError{Op: "read", Path: f.name, Err: ErrChanged}
		}
	}
	moved = min(moved, n)
	f.client.read.Add(moved)
	return moved, err
}

// copyWindow writes a range of the file to w, by way of the window.
func (f *File) copyWindow(ctx context.Context, w io.Writer, off, n int64) (copied int64, err error) {
	c := f.client
	var going []*reading
	defer func() {
		for _, r := range going {
			go func() {
				<-r.done
				c.slots.give(r.at)
			}()
		}
	}()
	size := c.readSize(n)
	next, end := off, off+n
	for copied < n {
		for next < end && len(going) < windowSlots {
			at, ok := c.slots.tryTake()
			if !ok && len(going) > 0 {
				break
			}
			if !ok {
				if at, err = c.slots.take(ctx, c.ctx); err != nil {
					return copied, err
				}
			}
			part := min(size, end-next)
			going = append(going, f.readSlot(at, next, part))
			next += part
		}
		r := going[0]
		select {
		case err = <-r.done:
		case <-ctx.Done():
			return copied, context.Cause(ctx)
		}
		going = going[1:]
		if err == nil {
			var k int
			k, err = c.give(w, r)
			copied += int64(k)
		}
		c.slots.give(r.at)
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// give gives what was read to w.
func (c *Client) give(w io.Writer, r *reading) (int, error) {
	c.memory.RLock()
	defer c.memory.RUnlock()
	if c.ctx.Err() != nil {
		return 0, ErrClosed
	}
	k, err := w.Write(c.window.memory[r.at:][:r.n:r.n])
	if int64(k) < r.n && err == nil {
		err = io.ErrShortWrite
	}
	return k, err
}

// ReadInto reads n bytes from an offset into a window, at a place in it. No processor copies them after they have left
// the server, unless they come through a connection. It returns how many bytes have arrived, and otherwise fails as
// ReadAt does. If ctx ends, the server may write there for a moment longer: close the window before its memory is used
// for anything else.
func (f *File) ReadInto(ctx context.Context, w *Window, at int64, off, n int64) (done int64, err error) {
	if at < 0 || n < 0 || off < 0 || at > int64(len(w.memory)) || n > int64(len(w.memory))-at {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EINVAL}
	}
	want := f.clamp(off, n)
	for done < want && err == nil {
		var k int64
		k, err = f.readWindow(ctx, w, at+done, off+done, min(want-done, wire.MaxRead))
		done += k
	}
	if err == nil && want < n {
		err = io.EOF
	}
	return done, err
}
