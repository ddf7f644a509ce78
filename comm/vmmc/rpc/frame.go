package rpc

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// A frame is a head and a body.
const (
	request = 1 // code: the procedure
	cancel  = 2
	reply   = 3
	failure = 4 // code: see below; body: the text
)

// Codes of failures.
const (
	failed    = 1
	unknown   = 2
	tooMany   = 3
	lastCodes = 3
)

// head is what each frame begins with. Its numbers are little-endian.
type head struct {
	kind, code uint32
	bytes      uint64        // of the body
	call       uint64        // which one, of the connection
	left       time.Duration // until the deadline of a request; 0: it has none
}

const headBytes = 32

func (h *head) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.kind)
	b = binary.LittleEndian.AppendUint32(b, h.code)
	b = binary.LittleEndian.AppendUint64(b, h.bytes)
	b = binary.LittleEndian.AppendUint64(b, h.call)
	return binary.LittleEndian.AppendUint64(b, uint64(h.left))
}

func decode(b []byte) head {
	return head{
		kind: binary.LittleEndian.Uint32(b), code: binary.LittleEndian.Uint32(b[4:]),
		bytes: binary.LittleEndian.Uint64(b[8:]), call: binary.LittleEndian.Uint64(b[16:]),
		left: time.Duration(min(binary.LittleEndian.Uint64(b[24:]), math.MaxInt64)),
	}
}

// Options are those of a Client or a Server.
type Options struct {
	// MaxBytes is the longest request or reply. A peer that sends a longer one loses its connection. 0 stands for
	// 16 MiB.
	MaxBytes int
	// MaxCalls is how many handlers may run at a time for one connection. Calls beyond that fail with ErrTooMany.
	// 0 stands for 1024.
	MaxCalls int
	// MaxPendingBytes bounds what a Server holds for one connection: requests whose handlers run, and replies that wait
	// because the client does not read. A request beyond that fails with ErrTooMany. A reply of more than 4 KiB beyond
	// that becomes an Error. 0 stands for 256 MiB, and it is at least twice MaxBytes.
	MaxPendingBytes int
}

func (o *Options) ensureDefaults() {
	o.MaxBytes = cmp.Or(o.MaxBytes, 16<<20) // 16 MiB
	o.MaxCalls = cmp.Or(o.MaxCalls, 1024)
	o.MaxPendingBytes = max(cmp.Or(o.MaxPendingBytes, 256<<20), 2*o.MaxBytes) // 256 MiB
}

// frames reads frames. An interrupted read goes on where it was.
type frames struct {
	in   *bufio.Reader
	max  int // bytes of a body
	head head
	body []byte // of the frame that is read, as far as it is there
	got  int
	mid  bool // the head was read
}

func newFrames(r io.Reader, max int) *frames {
	return &frames{in: bufio.NewReaderSize(r, 16<<10), max: max} // 16 KiB; longer bodies go past it
}

// next returns the next frame. The body is valid until the following call.
func (f *frames) next() (head, []byte, error) {
	if !f.mid {
		b, err := f.in.Peek(headBytes)
		if err != nil {
			return head{}, nil, err
		}
		f.head = decode(b)
		_, _ = f.in.Discard(headBytes) // they are there
		if f.head.bytes > uint64(f.max) {
			return head{}, nil, fmt.Errorf("%w: of %d bytes, where %d are allowed", ErrProtocol, f.head.bytes, f.max)
		}
		f.mid, f.got = true, 0
		f.body = grow(f.body, int(f.head.bytes))
	}
	n, err := io.ReadFull(f.in, f.body[f.got:])
	if f.got += n; err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return head{}, nil, err
	}
	f.mid = false
	return f.head, f.body, nil
}

// keptBytes is the longest buffer that is kept for the next frame.
const keptBytes = 64 << 10 // 64 KiB

func grow(b []byte, n int) []byte {
	if n <= cap(b) && cap(b) <= max(keptBytes, n) {
		return b[:n]
	}
	return make([]byte, n)
}

// joined is the longest body that is copied behind its head, to be one write.
const joined = 4 << 10 // 4 KiB

// write writes a frame. The scratch buffer may be used for the next one.
func write(w io.Writer, scratch *[]byte, h head, body []byte) error {
	h.bytes = uint64(len(body))
	b := h.append((*scratch)[:0])
	if len(body) <= joined {
		b = append(b, body...)
	}
	*scratch = b
	_, err := w.Write(b)
	if err == nil && len(body) > joined {
		_, err = w.Write(body)
	}
	return err
}
