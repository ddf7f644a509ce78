package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	headerBytes = 4
	maxBody     = 2 + 8 + MaxName // of Hello, the longest
)

// Append appends f to b. It panics if f has no such type, or a name longer than MaxName.
func Append(b []byte, f *Frame) []byte {
	start := len(b)
	b = append(b, byte(f.Type), 0, 0, 0)
	for _, l := range layouts[f.Type] {
		switch l {
		case version:
			b = binary.BigEndian.AppendUint16(b, f.Version)
		case shared:
			if f.Shared {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case code:
			b = append(b, f.Code)
		case tag:
			b = binary.BigEndian.AppendUint16(b, f.Tag)
		case export:
			b = binary.BigEndian.AppendUint32(b, f.Export)
		case number:
			b = binary.BigEndian.AppendUint64(b, f.Number)
		case offset:
			b = binary.BigEndian.AppendUint64(b, f.Offset)
		case size:
			b = binary.BigEndian.AppendUint64(b, f.Bytes)
		case count:
			b = binary.BigEndian.AppendUint64(b, f.Count)
		case key:
			b = binary.BigEndian.AppendUint32(b, f.Key)
		case name:
			b = append(b, f.Name...)
		}
	}
	body := len(b) - start - headerBytes
	if body > maxBody || f.Type == 0 {
		panic(fmt.Sprintf("wire: a frame of type %d with a body of %d bytes", f.Type, body))
	}
	b[start+2], b[start+3] = byte(body>>8), byte(body)
	return b
}

// Reader reads frames.
type Reader struct {
	from io.Reader
	buf  [headerBytes + maxBody]byte
}

// NewReader returns a Reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// Read reads one frame, and not a byte more. A frame with another length than its type has, or
// with values that no node sends, is ErrMalformed. Only names are allocated.
func (r *Reader) Read() (f Frame, err error) {
	header := r.buf[:headerBytes]
	if _, err := io.ReadFull(r.from, header); err != nil {
		return f, err
	}
	t, n := Type(header[0]), int(header[1])<<16|int(header[2])<<8|int(header[3])
	if t == 0 || t >= types || n > maxBody {
		return f, fmt.Errorf("%w: type %d with %d bytes", ErrMalformed, t, n)
	}
	body := r.buf[headerBytes : headerBytes+n]
	if _, err := io.ReadFull(r.from, body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return f, err
	}
	return decode(t, body)
}

// widths are the bytes of each field but name.
var widths = [...]int{
	version: 2, shared: 1, code: 1, tag: 2, export: 4, number: 8, offset: 8, size: 8, count: 8, key: 4,
}

func decode(t Type, b []byte) (f Frame, err error) {
	f.Type = t
	whole := len(b)
	for _, l := range layouts[t] {
		if l == name {
			f.Name, b = string(b), nil
			break
		}
		if len(b) < widths[l] {
			return f, fmt.Errorf("%w: type %d with %d bytes", ErrMalformed, t, whole)
		}
		switch l {
		case version:
			f.Version = binary.BigEndian.Uint16(b)
		case shared:
			f.Shared = b[0] == 1
			if b[0] > 1 {
				return f, fmt.Errorf("%w: %d for yes or no", ErrMalformed, b[0])
			}
		case code:
			f.Code = b[0]
		case tag:
			f.Tag = binary.BigEndian.Uint16(b)
		case export:
			f.Export = binary.BigEndian.Uint32(b)
		case number:
			f.Number = binary.BigEndian.Uint64(b)
		case offset:
			f.Offset = binary.BigEndian.Uint64(b)
		case size:
			f.Bytes = binary.BigEndian.Uint64(b)
		case count:
			f.Count = binary.BigEndian.Uint64(b)
		case key:
			f.Key = binary.BigEndian.Uint32(b)
		}
		b = b[widths[l]:]
	}
	if len(b) > 0 || len(f.Name) > MaxName || t == Data && (f.Bytes == 0 || f.Bytes > MaxChunk) {
		return f, fmt.Errorf("%w: type %d with %d bytes, for %d that follow", ErrMalformed, t, whole, f.Bytes)
	}
	return f, nil
}
