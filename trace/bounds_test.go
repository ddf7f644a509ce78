package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// allocated is how many bytes f allocates in all, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMemoryDoesNotGrowWithTheLengthOfTheTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	w, err := Create(path, Header{Ranks: testRanks})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Op: OpBarrier}
	appendMany := func(n int) {
		for range n {
			r.StartNs, r.EndNs = r.EndNs+977, r.EndNs+1954
			if err := rw.Append(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	const few, many = 50_000, 500_000
	appendMany(few) // buffers grow
	if n := allocated(func() { appendMany(many) }); n > 1<<20 {
		t.Errorf("writing %d records allocated %d bytes", many, n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rr, err := open(t, path).Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	read := func(n int) {
		for range n {
			if err := rr.Next(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(few)
	if n := allocated(func() { read(many) }); n > 1<<20 {
		t.Errorf("reading %d records allocated %d bytes", many, n)
	}
}

// A frame that decompresses to far more than it says must not be expanded.
func TestCompressionBombIsRefusedWithoutUnpackingIt(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := enc.EncodeAll(make([]byte, 256<<20), nil)
	path := filepath.Join(t.TempDir(), "t.pwt")
	write(t, path, [][]Record{sequence(10)}, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := whole[:preludeBytes+frameInfoBytes+int(binary.LittleEndian.Uint32(whole[preludeBytes+20:]))]
	for _, says := range []uint32{10, maxFrameBytes} {
		fi := frameInfo{kind: frameDefs, rawBytes: says, packedBytes: uint32(len(bomb))}
		b := append(fi.append(bytes.Clone(header), bomb), bomb...)
		n := allocated(func() {
			f, err := NewFile("bomb.pwt", bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Ranks()) != 0 || f.Torn() == nil {
				t.Errorf("frame of %d bytes that holds 256 MiB was taken", says)
			}
		})
		if n > 8*maxFrameBytes {
			t.Errorf("refusing a frame allocated %d bytes", n)
		}
	}
	fi := frameInfo{kind: frameHeader, rawBytes: maxFrameBytes + 1}
	b := fi.append(bytes.Clone(whole[:preludeBytes]), nil)
	if _, err := NewFile("long.pwt", bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("frame longer than the format allows: %v", err)
	}
}
