package trace

import (
	"encoding/binary"

	"pinwheel/mem"
)

// A record is coded as two bytes and the integers that they announce:
//
//	byte 0   bits 0-4 Op, bits 5-6 Dir, bit 7: times are those of the record before
//	byte 1   which of the fields below follow, because they are not as expected
//
// in the order: start - previous end, end - start, the same for processor
// time; stack; addr, bytes, peer, tag, comm (expected: as in the last record
// of this stack and direction); req (expected: 0); line (expected: the next).
// Differences that may be negative are zigzag-coded.
const sameCall = 1 << 7

const (
	hasStack = 1 << iota
	hasAddr
	hasBytes
	hasPeer
	hasTag
	hasComm
	hasReq
	hasLine
)

// site is what a record is expected to repeat: the last one of the same
// stack and direction.
type site struct {
	addr            mem.Addr
	bytes           uint64
	peer, tag, comm int32
}

// context is the state that encoder and decoder share; the zero value begins
// a frame.
type context struct {
	startNs, endNs       int64
	startCPUNs, endCPUNs int64
	stack, req, line     uint32
	sites                []site // 2*stack + 1 for writes
}

func (c *context) reset() { *c = context{sites: c.sites[:0]} }

func (c *context) site(stack uint32, d Dir) *site {
	i := int(stack) << 1
	if d == DirWrite {
		i++
	}
	for len(c.sites) <= i {
		c.sites = append(c.sites, site{})
	}
	return &c.sites[i]
}

// nextLine is the line number that needs no coding: records that were not
// imported have line 0 throughout.
func (c *context) nextLine() uint32 {
	if c.line == 0 {
		return 0
	}
	return c.line + 1
}

// encode appends one record, whose times the caller has checked against the
// record before.
func (c *context) encode(b []byte, r *Record, same bool) []byte {
	at := len(b)
	b = append(b, byte(r.Op)|byte(r.Dir)<<5, 0)
	if same && at > 0 {
		b[at] |= sameCall
	} else {
		b = binary.AppendUvarint(b, uint64(r.StartNs-c.endNs))
		b = binary.AppendUvarint(b, uint64(r.EndNs-r.StartNs))
		b = binary.AppendUvarint(b, uint64(r.StartCPUNs-c.endCPUNs))
		b = binary.AppendUvarint(b, uint64(r.EndCPUNs-r.StartCPUNs))
		c.startNs, c.endNs, c.startCPUNs, c.endCPUNs = r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs
	}
	var mask byte
	if r.Stack != c.stack {
		mask |= hasStack
		b = binary.AppendVarint(b, int64(r.Stack)-int64(c.stack))
		c.stack = r.Stack
	}
	s := c.site(r.Stack, r.Dir)
	if r.Addr != s.addr {
		mask |= hasAddr
		b = binary.AppendVarint(b, int64(r.Addr-s.addr))
	}
	if r.Bytes != s.bytes {
		mask |= hasBytes
		b = binary.AppendUvarint(b, r.Bytes)
	}
	if r.Peer != s.peer {
		mask |= hasPeer
		b = binary.AppendVarint(b, int64(r.Peer))
	}
	if r.Tag != s.tag {
		mask |= hasTag
		b = binary.AppendVarint(b, int64(r.Tag))
	}
	if r.Comm != s.comm {
		mask |= hasComm
		b = binary.AppendVarint(b, int64(r.Comm))
	}
	*s = site{r.Addr, r.Bytes, r.Peer, r.Tag, r.Comm}
	if r.Req != 0 {
		mask |= hasReq
		b = binary.AppendVarint(b, int64(r.Req)-int64(c.req))
		c.req = r.Req
	}
	if r.Line != c.nextLine() {
		mask |= hasLine
		b = binary.AppendVarint(b, int64(r.Line)-int64(c.line))
	}
	c.line = r.Line
	b[at+1] = mask
	return b
}

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

// decode reads the next record of a frame. It reports false if the bytes
// can't be a record of this rank.
func (c *context) decode(in *cursor, t *tables, r *Record) bool {
	head, mask := in.byte(), in.byte()
	r.Op, r.Dir = Op(head&0x1f), Dir(head>>5&3)
	if head&sameCall == 0 {
		c.startNs = in.after(c.endNs)
		c.endNs = in.after(c.startNs)
		c.startCPUNs = in.after(c.endCPUNs)
		c.endCPUNs = in.after(c.startCPUNs)
	}
	r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = c.startNs, c.endNs, c.startCPUNs, c.endCPUNs
	if mask&hasStack != 0 {
		c.stack = in.uint32(c.stack)
	}
	if in.bad || int(c.stack) >= len(t.stacks) {
		return false
	}
	r.Stack = c.stack
	s := c.site(c.stack, r.Dir)
	if mask&hasAddr != 0 {
		s.addr += mem.Addr(in.varint())
	}
	if mask&hasBytes != 0 {
		s.bytes = in.uvarint()
	}
	if mask&hasPeer != 0 {
		s.peer = in.int32()
	}
	if mask&hasTag != 0 {
		s.tag = in.int32()
	}
	if mask&hasComm != 0 {
		s.comm = in.int32()
	}
	r.Addr, r.Bytes, r.Peer, r.Tag, r.Comm = s.addr, s.bytes, s.peer, s.tag, s.comm
	r.Req = 0
	if mask&hasReq != 0 {
		c.req = in.uint32(c.req)
		r.Req = c.req
	}
	if mask&hasLine != 0 {
		c.line = in.uint32(c.line)
	} else {
		c.line = c.nextLine()
	}
	r.Line = c.line
	if in.bad || r.Op-1 >= numOps-1 || r.Dir > DirWrite {
		return false
	}
	// What repeats the site's last record was checked with that one, and the
	// zero value of a new site is valid.
	return mask&(hasAddr|hasBytes|hasPeer|hasTag|hasComm) == 0 || t.check(r) == nil
}
