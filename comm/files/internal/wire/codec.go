package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrMalformed is the error of bytes that are no message, or not the one that was expected.
var ErrMalformed = errors.New("files: malformed message")

// Message is a request or an answer.
type Message interface {
	// fields gives each field to the codec, in order.
	fields(*codec)
}

// Append appends the encoding of a message. Its fields must be within their bounds, or the other end refuses it.
func Append(b []byte, m Message) []byte {
	if long, ok := m.(interface{ size() int }); ok {
		b = slices.Grow(b, long.size())
	}
	c := codec{out: b, encodes: true}
	m.fields(&c)
	return c.out
}

// Decode reads a message, which must be all of b. Contents in it are parts of b.
func Decode(b []byte, m Message) error {
	c := codec{in: b}
	m.fields(&c)
	if c.err == nil && len(c.in) > 0 {
		c.err = fmt.Errorf("%w: %d bytes behind its end", ErrMalformed, len(c.in))
	}
	return c.err
}

// codec appends fields to out, or takes them from in. After an error it takes nothing more.
type codec struct {
	encodes bool
	out, in []byte
	err     error
}

func (c *codec) take(n uint64) []byte {
	if c.err == nil && n > uint64(len(c.in)) {
		c.err = fmt.Errorf("%w: %d bytes where %d are missing", ErrMalformed, len(c.in), n)
	}
	if c.err != nil {
		return nil
	}
	b := c.in[:n:n]
	c.in = c.in[n:]
	return b
}

func (c *codec) u64(v *uint64) {
	if c.encodes {
		c.out = binary.LittleEndian.AppendUint64(c.out, *v)
	} else if b := c.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (c *codec) u32(v *uint32) {
	if c.encodes {
		c.out = binary.LittleEndian.AppendUint32(c.out, *v)
	} else if b := c.take(4); b != nil {
		*v = binary.LittleEndian.Uint32(b)
	}
}

// size is a count of bytes, or an offset: it is not negative.
func (c *codec) size(v *int64) {
	u := uint64(*v)
	c.u64(&u)
	if !c.encodes && c.err == nil && int64(u) < 0 {
		c.err = fmt.Errorf("%w: a size of %d bytes", ErrMalformed, u)
	}
	*v = int64(u)
}

func (c *codec) i64(v *int64) {
	u := uint64(*v)
	c.u64(&u)
	*v = int64(u)
}

func (c *codec) flag(v *bool) {
	if c.encodes {
		b := byte(0)
		if *v {
			b = 1
		}
		c.out = append(c.out, b)
	} else if b := c.take(1); b != nil {
		if *v = b[0] == 1; b[0] > 1 {
			c.err = fmt.Errorf("%w: a flag of %d", ErrMalformed, b[0])
		}
	}
}

// length is the length of what follows, of at most most.
func (c *codec) length(n, most int) int {
	v := uint32(n)
	c.u32(&v)
	if !c.encodes && c.err == nil && uint64(v) > uint64(most) {
		c.err = fmt.Errorf("%w: a length of %d where %d are allowed", ErrMalformed, v, most)
	}
	if c.err != nil {
		return 0
	}
	return int(v)
}

func (c *codec) str(v *string, most int) {
	n := c.length(len(*v), most)
	if c.encodes {
		c.out = append(c.out, *v...)
	} else {
		*v = string(c.take(uint64(n)))
	}
}

func (c *codec) blob(v *[]byte, most int) {
	n := c.length(len(*v), most)
	if c.encodes {
		c.out = append(c.out, *v...)
	} else {
		*v = c.take(uint64(n))
	}
}

// list is a list of at most most elements, each of which has a byte or more.
func list[T any](c *codec, v *[]T, most int, element func(*T)) {
	n := c.length(len(*v), most)
	if !c.encodes {
		if *v = nil; n > len(c.in) {
			c.err = fmt.Errorf("%w: a list of %d in %d bytes", ErrMalformed, n, len(c.in))
			return
		}
		*v = make([]T, n)
	}
	for i := range *v {
		if element(&(*v)[i]); c.err != nil {
			*v = nil
			return
		}
	}
}
