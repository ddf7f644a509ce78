package trace

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

const testRanks = 4

// write makes a trace of the given records per rank, with communicator 7 of
// all ranks defined and n call sites.
func write(t testing.TB, path string, perRank [][]Record, sites int) {
	t.Helper()
	w, err := Create(path, Header{Program: "prog", Ranks: testRanks, ThresholdBytes: 1, Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for rank, recs := range perRank {
		rw, err := w.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		if err := rw.DefineComm(7, 0, []int32{0, 2, 1, 3}); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < sites; i++ {
			if id, err := rw.Stack([]uint64{uint64(i), 0xffff_ffff_ffff_0000}); err != nil || int(id) != i {
				t.Fatalf("call site %d got ID %d, %v", i, id, err)
			}
		}
		for i := range recs {
			if err := rw.Append(&recs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func drain(t testing.TB, rr *RankReader) []Record {
	t.Helper()
	var recs []Record
	for {
		var r Record
		if err := rr.Next(&r); errors.Is(err, io.EOF) {
			return recs
		} else if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, r)
	}
}

func readRank(t testing.TB, f *File, rank int) []Record {
	t.Helper()
	rr, err := f.Rank(rank)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, rr)
}

// drawRecords makes records that obey the rules of the format, calls of
// several buffers among them.
func drawRecords(t *rapid.T, label string, most, sites int) []Record {
	var recs []Record
	var ns, cpuNs int64
	step := rapid.Int64Range(0, 1<<40)
	for range rapid.IntRange(0, most).Draw(t, label+" records") {
		var r Record
		if len(recs) > 0 && rapid.IntRange(0, 3).Draw(t, "same call") == 0 {
			r = recs[len(recs)-1]
		} else {
			r.Op = Op(rapid.IntRange(1, int(numOps)-1).Draw(t, "op"))
			r.StartNs = ns + step.Draw(t, "gap")
			r.EndNs = r.StartNs + step.Draw(t, "length")
			r.StartCPUNs = cpuNs + step.Draw(t, "cpu gap")
			r.EndCPUNs = r.StartCPUNs + step.Draw(t, "cpu length")
			ns, cpuNs = r.EndNs, r.EndCPUNs
		}
		r.Dir = Dir(rapid.IntRange(0, 2).Draw(t, "dir"))
		r.Addr = mem.Addr(rapid.Uint64Range(0, 1<<48).Draw(t, "addr"))
		r.Bytes = rapid.Uint64Range(0, 1<<40).Draw(t, "bytes")
		r.Peer = rapid.Int32Range(NoPeer, testRanks).Draw(t, "peer")
		r.Tag = rapid.Int32().Draw(t, "tag")
		r.Comm = rapid.SampledFrom([]int32{0, 7}).Draw(t, "comm")
		r.Req = rapid.Uint32().Draw(t, "req")
		r.Stack = rapid.Uint32Range(0, uint32(sites-1)).Draw(t, "stack")
		r.Line = rapid.Uint32().Draw(t, "line")
		recs = append(recs, r)
	}
	return recs
}

func TestEveryRecordReadsBackAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	rapid.Check(t, func(rt *rapid.T) {
		const sites = 5
		want := make([][]Record, testRanks)
		for rank := range want {
			want[rank] = drawRecords(rt, "rank", 60, sites)
		}
		write(t, path, want, sites)
		f, err := Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		if h := f.Header(); h.Program != "prog" || h.Ranks != testRanks || h.Clock != ClockMonotonic ||
			h.ThresholdBytes != 1 || h.Source != "test" {
			rt.Fatalf("header %+v", h)
		}
		for rank := range want {
			rr, err := f.Rank(rank)
			if err != nil {
				rt.Fatal(err)
			}
			if got := drain(t, rr); !slices.Equal(got, want[rank]) {
				rt.Fatalf("rank %d:\ngot  %+v\nwant %+v", rank, got, want[rank])
			}
			if f.Records(rank) != uint64(len(want[rank])) {
				rt.Fatalf("rank %d: index says %d records, %d were written", rank, f.Records(rank), len(want[rank]))
			}
			if got := rr.Comm(7); !slices.Equal(got, []int32{0, 2, 1, 3}) {
				rt.Fatalf("communicator read back as %v", got)
			}
			if got := rr.Frames(4); !slices.Equal(got, []uint64{4, 0xffff_ffff_ffff_0000}) || len(rr.tables.stacks) != sites {
				rt.Fatalf("call site read back as %x of %d", got, len(rr.tables.stacks))
			}
		}
	})
}
