package trace

import "encoding/binary"

// cursor reads integers off a frame. After a failure, bad is set and every
// further value is 0, so that one check at the end of a record suffices.
type cursor struct {
	b   []byte
	off int
	bad bool
}

func (c *cursor) byte() byte {
	if c.off >= len(c.b) {
		c.bad = true
		return 0
	}
	v := c.b[c.off]
	c.off++
	return v
}

func (c *cursor) uvarint() uint64 {
	if c.off < len(c.b) && c.b[c.off] < 0x80 {
		v := c.b[c.off]
		c.off++
		return uint64(v)
	}
	return c.longUvarint()
}

func (c *cursor) longUvarint() uint64 {
	v, n := binary.Uvarint(c.b[c.off:])
	if n <= 0 {
		c.bad = true
		c.off = len(c.b)
		return 0
	}
	c.off += n
	return v
}

func (c *cursor) varint() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// int32 reads a value that must fit.
func (c *cursor) int32() int32 {
	v := c.varint()
	if int64(int32(v)) != v {
		c.bad = true
	}
	return int32(v)
}

// uint32 reads a difference to base whose sum must fit.
func (c *cursor) uint32(base uint32) uint32 {
	v := int64(base) + c.varint()
	if int64(uint32(v)) != v {
		c.bad = true
	}
	return uint32(v)
}

// after returns base plus an unsigned difference, which must not overflow.
func (c *cursor) after(base int64) int64 {
	v := base + int64(c.uvarint())
	if v < base {
		c.bad = true
	}
	return v
}

// small reads an unsigned value that must fit in 32 bits.
func (c *cursor) small() uint32 {
	v := c.uvarint()
	if v > 1<<32-1 {
		c.bad = true
	}
	return uint32(v)
}

// text reads a length and that many bytes.
func (c *cursor) text() string {
	n := c.uvarint()
	if n > maxStringBytes || n > uint64(len(c.b)-c.off) {
		c.bad = true
		return ""
	}
	c.off += int(n)
	return string(c.b[c.off-int(n) : c.off])
}
