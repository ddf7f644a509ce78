package trace

import (
	"bytes"
	"fmt"
	"strconv"

	"pinwheel/mem"
)

// csvFields is the number of fields of a CSV line:
//
//	start_ns,end_ns,start_cpu_ns,end_cpu_ns,op,dir,addr,bytes,peer,tag,comm,req,stack
const csvFields = 13

var opByName = func() map[string]Op {
	m := map[string]Op{}
	for op := OpInvalid + 1; op < numOps; op++ {
		m[op.String()] = op
	}
	return m
}()

// fieldReader takes a line apart, field by field; the first error sticks.
type fieldReader struct {
	rest []byte
	more bool // a field follows
	err  error
}

func (f *fieldReader) next() []byte {
	if !f.more {
		return nil
	}
	var field []byte
	field, f.rest, f.more = bytes.Cut(f.rest, []byte{','})
	return field
}

// int reads a decimal integer from lo to hi.
func (f *fieldReader) int(name string, lo, hi int64) int64 {
	b := f.next()
	v, ok := parseInt(b)
	if f.err == nil && (!ok || v < lo || v > hi) {
		f.err = fmt.Errorf("%s %q is not a number from %d to %d", name, clip(b), lo, hi)
	}
	return v
}

// parseInt reads a decimal integer, with a sign only if it is negative.
func parseInt(b []byte) (int64, bool) {
	v, err := strconv.ParseInt(string(b), 10, 64)
	return v, err == nil && b[0] != '+'
}

// parseHex reads a hexadecimal number without prefix.
func parseHex(b []byte) (uint64, bool) {
	v, err := strconv.ParseUint(string(b), 16, 64)
	return v, err == nil
}

// parseStack reads return addresses separated by semicolons into dst.
func parseStack(dst []uint64, b []byte) ([]uint64, error) {
	for more := len(b) > 0; more; {
		var addr []byte
		addr, b, more = bytes.Cut(b, []byte{';'})
		v, ok := parseHex(addr)
		if !ok {
			return dst, fmt.Errorf("return address %q is not a hexadecimal number", clip(addr))
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// parseCSVLine fills in all of r but Stack and Line, and returns the text of
// the stack. What the numbers mean for a rank is checked by RankWriter.Append.
func parseCSVLine(r *Record, line []byte) (stack []byte, err error) {
	if n := bytes.Count(line, []byte{','}) + 1; n != csvFields {
		return nil, fmt.Errorf("line has %d fields instead of %d", n, csvFields)
	}
	const maxNs, max32 = 1<<62 - 1, 1<<31 - 1
	f := fieldReader{rest: line, more: true}
	*r = Record{Peer: NoPeer}
	r.StartNs = f.int("start_ns", 0, maxNs)
	r.EndNs = f.int("end_ns", 0, maxNs)
	r.StartCPUNs = f.int("start_cpu_ns", 0, maxNs)
	r.EndCPUNs = f.int("end_cpu_ns", 0, maxNs)
	op := f.next()
	r.Op = opByName[string(op)]
	if r.Op == OpInvalid && f.err == nil {
		f.err = fmt.Errorf("unknown op %q", clip(op))
	}
	if r.Op == OpFinalize { // has times only
		return nil, f.err
	}
	dir := f.next()
	switch {
	case string(dir) == "s":
		r.Dir = DirRead
	case string(dir) == "r":
		r.Dir = DirWrite
	case (len(dir) > 0 || r.Op != OpWait && r.Op != OpBarrier) && f.err == nil:
		f.err = fmt.Errorf("direction %q of %s is neither s nor r", clip(dir), r.Op)
	}
	addr := f.next()
	a, ok := parseHex(addr)
	r.Addr = mem.Addr(a)
	if (!ok || uint64(r.Addr) != a) && f.err == nil {
		f.err = fmt.Errorf("address %q is not a hexadecimal number", clip(addr))
	}
	r.Bytes = uint64(f.int("bytes", 0, maxNs))
	r.Peer = int32(f.int("peer", NoPeer, max32))
	r.Tag = int32(f.int("tag", -max32, max32))
	r.Comm = int32(f.int("comm", 0, max32))
	r.Req = uint32(f.int("req", 0, 1<<32-1))
	return f.next(), f.err
}

// clip shortens text from a file for a one-line message.
func clip(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}
