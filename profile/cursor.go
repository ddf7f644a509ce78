package profile

import "encoding/binary"

// cursor reads what append functions have written. After a failure bad is set, and every further value is zero, so
// that one check at the end suffices.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[n:]
	return v
}

// upTo reads a value that is at most most.
func (c *cursor) upTo(most uint64) uint64 {
	v := c.uvarint()
	if v > most {
		c.fail()
		return 0
	}
	return v
}

// count reads how many things follow, each of which takes at least this many bytes.
func (c *cursor) count(bytes int) int {
	n := c.uvarint()
	if n > uint64(len(c.b)/bytes) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *cursor) fixed64() uint64 {
	if len(c.b) < 8 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b)
	c.b = c.b[8:]
	return v
}

func (c *cursor) text() string {
	n := c.count(1)
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

func (c *cursor) fail() { c.bad, c.b = true, nil }

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
