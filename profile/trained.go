package profile

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"pinwheel/predictor"
)

// Limits of the trained entries of one rank. A predictor keeps no more.
const (
	maxBuffers = 1 << 16
	maxEntries = 1 << 16
	maxTimes   = 64       // gaps of one entry
	maxPart    = 16 << 20 // bytes, uncompressed
)

// pack codes and compresses trained entries.
func pack(l *predictor.Trained) (packed []byte, err error) {
	raw := appendTrained(nil, l)
	if len(l.Buffers) > maxBuffers || len(l.Entries) > maxEntries || len(raw) > maxPart {
		return nil, fmt.Errorf("%d buffers and %d trained of a rank are too many", len(l.Buffers), len(l.Entries))
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<18), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.EncodeAll(raw, nil), nil
}

// unpack is the reverse of pack.
func unpack(packed []byte) (*predictor.Trained, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	raw, err := d.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	in := cursor{b: raw}
	l := in.trained()
	if in.bad || len(in.b) > 0 {
		return nil, fmt.Errorf("%w: trained entries", ErrDamaged)
	}
	return l, nil
}

func appendTrained(b []byte, l *predictor.Trained) []byte {
	b = binary.AppendUvarint(b, uint64(len(l.Buffers)))
	for _, r := range l.Buffers {
		b = binary.LittleEndian.AppendUint64(b, r.Site)
		b = binary.AppendUvarint(b, uint64(r.Ordinal))
		b = binary.AppendUvarint(b, r.Uses)
		b = binary.AppendUvarint(b, r.Bytes)
	}
	b = binary.AppendUvarint(b, uint64(len(l.Entries)))
	for _, s := range l.Entries {
		b = binary.LittleEndian.AppendUint64(b, s.Context)
		b = appendTimes(b, s.GapsNs)
		b = binary.AppendUvarint(b, uint64(s.Steps))
		b = binary.LittleEndian.AppendUint64(b, s.Trigger)
		b = binary.AppendUvarint(b, uint64(s.Confidence))
		b = appendTimes(b, s.AfterNs)
	}
	return b
}

func (c *cursor) trained() *predictor.Trained {
	l := &predictor.Trained{}
	if n := c.count(11); n <= maxBuffers {
		l.Buffers = make([]predictor.Buffer, n)
	} else {
		c.fail()
	}
	for i := range l.Buffers {
		l.Buffers[i] = predictor.Buffer{Site: c.fixed64(), Ordinal: c.uint32(), Uses: c.uvarint(), Bytes: c.uvarint()}
	}
	if n := c.count(20); n <= maxEntries {
		l.Entries = make([]predictor.TrainedEntry, n)
	} else {
		c.fail()
	}
	for i := range l.Entries {
		l.Entries[i] = predictor.TrainedEntry{
			Context: c.fixed64(), GapsNs: c.times(), Steps: c.uint32(), Trigger: c.fixed64(), Confidence: c.uint32(), AfterNs: c.times(),
		}
		if s := &l.Entries[i]; s.Confidence > 0 && s.Steps > 0 && len(s.AfterNs) == 0 {
			c.fail() // a trigger that no need came after
		}
	}
	return l
}

func (c *cursor) uint32() uint32 { return uint32(c.upTo(1<<32 - 1)) }

// Times are 8 significant bits each, and how many bits follow those: an error of 0.4 % at most, far below that of any
// prediction. A profile gets half as large by that. A time in a file is earlier than in the run, so needs are met
// rather too early than too late.
const timeBits = 8

func appendTimes(b []byte, ns []int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(ns)))
	for _, t := range ns {
		t := uint64(max(t, 0))
		shift := max(bits.Len64(t)-timeBits, 0)
		b = binary.AppendUvarint(b, t>>shift<<6|uint64(shift))
	}
	return b
}

func (c *cursor) times() []int64 {
	n := c.count(1)
	if n > maxTimes {
		c.fail()
	}
	if n == 0 || c.bad {
		return nil
	}
	ns := make([]int64, n)
	for i := range ns {
		v := c.upTo(1<<(timeBits+6) - 1)
		shift := v & 63
		if shift > 63-timeBits {
			c.fail()
			return nil
		}
		ns[i] = int64(v >> 6 << shift)
	}
	return ns
}
