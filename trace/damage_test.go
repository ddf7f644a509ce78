package trace

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/mem"
)

// sequence makes n calls of 10 ns with gaps of 90 ns.
func sequence(n int) []Record {
	recs := make([]Record, n)
	for i := range recs {
		start := int64(i) * 100
		recs[i] = Record{StartNs: start, EndNs: start + 10, StartCPUNs: start / 2, EndCPUNs: start/2 + 1,
			Op: OpSend, Dir: DirRead, Comm: 7, Stack: uint32(i % 3), Peer: int32(i % 4), Tag: int32(i * 7919 % 1000),
			Addr: mem.Addr(0x7f00_0000_0000 + i*4096), Bytes: 1 << 20, Line: uint32(i + 5)}
	}
	return recs
}

// file returns a trace of two ranks, big enough for several frames of each.
func file(t testing.TB) ([]byte, [][]Record) {
	t.Helper()
	recs := [][]Record{sequence(20_000), sequence(9_000)}
	path := filepath.Join(t.TempDir(), "t.pwt")
	write(t, path, recs, 3)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b, recs
}

func TestCutFileIsReadUpToItsLastWholeFrameAndSaysSo(t *testing.T) {
	whole, want := file(t)
	readable := 0
	for cut := 0; cut < len(whole); cut += 997 {
		f, err := NewFile("cut.pwt", bytes.NewReader(whole[:cut]), int64(cut))
		if err != nil {
			if readable > 0 || !errors.Is(err, ErrNotTrace) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut at byte %d: %v", cut, err)
			}
			continue
		}
		readable++
		torn, ok := f.Torn().(*TornError)
		if !ok || torn.KeptBytes+torn.LostBytes != int64(cut) || strings.Contains(torn.Error(), "\n") {
			t.Fatalf("cut at byte %d: torn %v", cut, f.Torn())
		}
		var n uint64
		for _, rank := range f.Ranks() {
			got := readRank(t, f, rank)
			if len(got) > len(want[rank]) || !slices.Equal(got, want[rank][:len(got)]) {
				t.Fatalf("cut at byte %d: rank %d is no prefix of what was written", cut, rank)
			}
			n += uint64(len(got))
		}
		if n != torn.Records {
			t.Fatalf("cut at byte %d: %d records, Torn says %d", cut, n, torn.Records)
		}
	}
	if readable < 5 {
		t.Fatalf("only %d cut files could be read", readable)
	}
	f, err := NewFile("whole.pwt", bytes.NewReader(whole), int64(len(whole)))
	if err != nil || f.Torn() != nil {
		t.Fatalf("whole file: %v, torn %v", err, f.Torn())
	}
}

func TestEveryFlippedByteIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	want := sequence(50)
	write(t, path, [][]Record{want}, 3)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if i >= len(preludeMagic)+4 && i < preludeBytes {
			continue // reserved
		}
		b := slices.Clone(whole)
		b[i] ^= 0x10
		f, err := NewFile("flipped.pwt", bytes.NewReader(b), int64(len(b)))
		if err != nil || f.Torn() != nil {
			continue
		}
		rr, err := f.Rank(0)
		for err == nil {
			err = rr.Next(&Record{})
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d flipped: reads as if whole, %v", i, len(whole), err)
		}
	}
}

func TestForeignAndNewerFilesAreRefused(t *testing.T) {
	open := func(b []byte) error {
		_, err := NewFile("x", bytes.NewReader(b), int64(len(b)))
		return err
	}
	if err := open([]byte("start_ns,end_ns\n1,2\n")); !errors.Is(err, ErrNotTrace) {
		t.Errorf("a CSV: %v, want ErrNotTrace", err)
	}
	if err := open(nil); !errors.Is(err, ErrNotTrace) {
		t.Errorf("an empty file: %v, want ErrNotTrace", err)
	}
	b, _ := file(t)
	b[len(preludeMagic)]++
	if err := open(b); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: %v, want ErrVersion", err)
	}
}

func TestWindowHoldsTheCallsThatTouchItAndReadsNoOthers(t *testing.T) {
	whole, want := file(t)
	in := &countingReader{r: bytes.NewReader(whole)}
	f, err := NewFile("t.pwt", in, int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range [][2]int64{{0, 1}, {10, 11}, {11, 100}, {11, 101}, {950_000, 1_050_000}, {1_999_900, 1 << 40},
		{1 << 40, 1 << 41}, {500, 500}} {
		var inside []Record
		for _, r := range want[0] {
			if r.EndNs >= w[0] && r.StartNs < w[1] {
				inside = append(inside, r)
			}
		}
		in.n = 0
		rr, err := f.Window(0, w[0], w[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := drain(t, rr); !slices.Equal(got, inside) {
			t.Errorf("window %v: %d records, want %d", w, len(got), len(inside))
		}
		if in.n > len(whole)/2 {
			t.Errorf("window %v: read %d of %d bytes", w, in.n, len(whole))
		}
	}
}

type countingReader struct {
	r io.ReaderAt
	n int
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.n += len(b)
	return c.r.ReadAt(b, off)
}

func TestNextDoesNotAllocate(t *testing.T) {
	whole, want := file(t)
	f, err := NewFile("t.pwt", bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	rr, err := f.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	n := len(want[0]) / 2
	for range n { // buffers grow
		if err := rr.Next(&r); err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(n-2, func() { _ = rr.Next(&r) }); got != 0 {
		t.Errorf("%v allocations per record", got)
	}
}
