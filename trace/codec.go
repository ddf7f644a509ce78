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
	call             call
	stack, req, line uint32
	sites            []site // 2*stack + 1 for writes
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

// encode appends one record, which the caller has checked to follow the
// record before.
func (c *context) encode(b []byte, r *Record) []byte {
	at := len(b)
	b = append(b, byte(r.Op)|byte(r.Dir)<<5, 0)
	if this := callOf(r); this == c.call {
		b[at] |= sameCall
	} else {
		b = binary.AppendUvarint(b, uint64(r.StartNs-c.call.endNs))
		b = binary.AppendUvarint(b, uint64(r.EndNs-r.StartNs))
		b = binary.AppendUvarint(b, uint64(r.StartCPUNs-c.call.endCPUNs))
		b = binary.AppendUvarint(b, uint64(r.EndCPUNs-r.StartCPUNs))
		c.call = this
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

// decode reads the next record of a frame. It reports false if the bytes
// can't be a record of this rank.
func (c *context) decode(in *cursor, t *tables, r *Record) bool {
	head, mask := in.byte(), in.byte()
	r.Op, r.Dir = Op(head&0x1f), Dir(head>>5&3)
	k := &c.call
	if head&sameCall == 0 {
		k.op = r.Op
		k.startNs = in.after(k.endNs)
		k.endNs = in.after(k.startNs)
		k.startCPUNs = in.after(k.endCPUNs)
		k.endCPUNs = in.after(k.startCPUNs)
	}
	r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = k.startNs, k.endNs, k.startCPUNs, k.endCPUNs
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
	if in.bad || r.Op-1 >= numOps-1 || r.Op != k.op || r.Dir > DirWrite {
		return false
	}
	// What repeats the site's last record was checked with that one, and the
	// zero value of a new site is valid.
	return mask&(hasAddr|hasBytes|hasPeer|hasTag|hasComm) == 0 || t.check(r) == nil
}
