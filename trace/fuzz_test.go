package trace

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The targets that touch the file system cover a little code or other by
// chance, which makes the fuzzer minimise without end: run them with
// -fuzzminimizetime=1x.

// readAll reads every record of every rank, checking what a reader promises:
// an error, or records that a writer would accept.
func readAll(t *testing.T, b []byte) {
	f, err := NewFile("fuzz.pwt", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	defer f.Close()
	h := f.Header()
	for _, rank := range f.Ranks() {
		rr, err := f.Rank(rank)
		if err != nil {
			continue
		}
		tab, last := newTables(h.Ranks), call{}
		tab.stacks, tab.comms = rr.tables.stacks, rr.tables.comms
		var n uint64
		for {
			var r Record
			if err := rr.Next(&r); err != nil {
				if errors.Is(err, io.EOF) && n != f.Records(rank) {
					t.Fatalf("rank %d ends after %d of %d records", rank, n, f.Records(rank))
				}
				break
			}
			n++
			if err := callOf(&r).follow(last); err != nil {
				t.Fatalf("rank %d record %d: %v", rank, n, err)
			}
			if err := tab.check(&r); err != nil {
				t.Fatalf("rank %d record %d: %v", rank, n, err)
			}
			last = callOf(&r)
		}
	}
}

// FuzzFile feeds whole files to the reader: whatever they are, it must not
// panic, nor return a record that the format forbids.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	for i, n := range []int{0, 1, 40} {
		path := filepath.Join(dir, string(rune('a'+i)))
		write(f, path, [][]Record{sequence(n), sequence(n / 2)}, 3)
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-trailerBytes])
		f.Add(b[:len(b)*2/3])
	}
	f.Fuzz(readAll)
}

// withUnmap is the content of a frame in which a buffer ends between two calls.
func withUnmap() (raw []byte) {
	var enc context
	recs := sequence(2)
	end := Record{Op: OpUnmap, Peer: NoPeer, Addr: recs[0].Addr, Bytes: recs[0].Bytes,
		StartNs: recs[1].StartNs, EndNs: recs[1].StartNs, StartCPUNs: recs[1].StartCPUNs, EndCPUNs: recs[1].StartCPUNs}
	for _, r := range []Record{recs[0], end, recs[1]} {
		raw = enc.encode(raw, &r)
	}
	return raw
}

// FuzzFrames puts the content of frames into a file with right checksums, so
// that the fuzzer reaches what checksums protect.
func FuzzFrames(f *testing.F) {
	defs := appendStackDef(appendCommDef(nil, 7, 1, []int32{0, 2, 1, 3}), []uint64{1, 2})
	var enc context
	var raw []byte
	recs := sequence(3)
	for i := range recs {
		recs[i].Stack = 1
		raw = enc.encode(raw, &recs[i])
	}
	f.Add(defs, raw, uint32(3), int64(0), int64(210))
	f.Add([]byte{defMatch, 9, 2, 0, defLeftOut, 3, 1, 'x', defComm, 2, 1, 0, defModule, 7, 1, 'a', 2, '0', '1'}, raw,
		uint32(3), int64(0), int64(210))
	f.Add([]byte{defPlace, 2, 1, 5, defUnseen, 3, 0x80, 0x40, 1, 'x'}, withUnmap(), uint32(3), int64(0), int64(210))
	f.Add([]byte{defStack, 0xff}, []byte{1, hasStack, 0, 0, 0, 0, 0x80}, uint32(1), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, defs, raw []byte, n uint32, firstNs, lastNs int64) {
		if len(defs) > maxFrameBytes || len(raw) > maxFrameBytes {
			return
		}
		path := filepath.Join(t.TempDir(), "t.pwt")
		w, err := Create(path, Header{Ranks: testRanks})
		if err != nil {
			t.Fatal(err)
		}
		w.writeFrame(frameInfo{kind: frameDefs}, defs)
		w.writeFrame(frameInfo{kind: frameRecords, records: n, firstNs: firstNs, lastNs: lastNs}, raw)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, b)
	})
}

// FuzzCSV feeds text to the importer: it must not panic, must blame a line
// or accept, and what it accepts must read back whole.
func FuzzCSV(f *testing.F) {
	f.Add(goodCSV, false)
	f.Add(goodCSV[:len(goodCSV)-10], true)
	f.Add("# mpitrace 2\n# rank 0 of 1 min_bytes 1\n# comm 0 0\n1,2,1,2,send,s,ffffffffffffffff,9,0,0,0,0,\n", false)
	f.Add("\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00", true)
	f.Fuzz(func(t *testing.T, text string, acceptCut bool) {
		res, out, err := importText(t, text, ImportOptions{AcceptCut: acceptCut})
		if err != nil {
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Fatalf("failed import left %v", left)
			}
			return
		}
		tr := open(t, out)
		var n uint64
		for _, rank := range tr.Ranks() {
			n += uint64(len(readRank(t, tr, rank)))
		}
		if n != res.Records || tr.Torn() != nil {
			t.Fatalf("%d records imported, %d read back, torn %v", res.Records, n, tr.Torn())
		}
	})
}
