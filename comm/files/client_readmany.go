package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"pinwheel/comm/files/internal/wire"
)

// SmallBytes is the size of the largest file that comes inside of an answer: see Client.ReadMany.
const SmallBytes = wire.MaxSmall

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
	files  []wire.Content
	memory *[]byte // of files, from replies; may be nil
	err    error
}

// replies are long ones that were used.
var replies = sync.Pool{New: func() any { return new([]byte) }}

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
			if a.memory != nil {
				replies.Put(a.memory)
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
			a = c.readSome(ctx, names[:ask], verify)
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

// readSome asks for files once. The answer has the first ones.
func (c *Client) readSome(ctx context.Context, names []string, verify Sum) (a answer) {
	var e *dataEnd
	q := wire.Names{Names: names, Kind: string(verify)}
	if c.Transport() == BySendfile {
		if e, a.err = c.dataConn(ctx, c.data, names[0]); a.err != nil {
			return a
		}
		q.Conn = e.number
	}
	var contents wire.Contents
	a.memory = replies.Get().(*[]byte)
	reply := a.memory
	if e != nil {
		reply = new([]byte) // a short one
	}
	_, a.err = c.callInto(ctx, wire.ProcReadMany, "read", names[0], &q, &contents, reply)
	a.files = contents.Files
	if k := len(a.files); a.err == nil && (k == 0 || k > len(names)) {
		a.err = fmt.Errorf("%w: %d answers to %d names", ErrProtocol, k, len(names))
	}
	if e == nil {
		return a
	}
	if a.err == nil {
		a.err = c.takeContents(ctx, e, a.files, a.memory)
	}
	if a.err != nil {
		c.drop(e)
		return a
	}
	e.keep()
	return a
}

// takeContents takes the contents of files out of a data connection, into memory.
func (c *Client) takeContents(ctx context.Context, e *dataEnd, all []wire.Content, memory *[]byte) error {
	total := int64(0)
	for k := range all {
		f := &all[k]
		if f.Status.Code != 0 {
			continue
		}
		if total += f.Info.Size; f.Info.Size > SmallBytes || len(f.Content) > 0 {
			return fmt.Errorf("%w: a small file of %d bytes", ErrProtocol, f.Info.Size)
		}
	}
	b := slices.Grow((*memory)[:0], int(total))[:total]
	*memory = b
	for _, over := range []context.Context{ctx, c.ctx} {
		stop := context.AfterFunc(over, func() { e.Close() })
		defer stop()
	}
	if _, err := io.ReadFull(e.Conn, b); err != nil {
		switch {
		case c.ctx.Err() != nil:
			return ErrClosed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		return dataGone(err)
	}
	for k := range all {
		if f := &all[k]; f.Status.Code == 0 {
			f.Content, b = b[:f.Info.Size:f.Info.Size], b[f.Info.Size:]
		}
	}
	return nil
}
