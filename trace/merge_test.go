package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// perRank writes one file for each of the ranks of a run.
func perRank(t *testing.T, h Header, recs [][]Record) []string {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for rank := range recs {
		path := filepath.Join(dir, string(rune('a'+rank)))
		w, err := Create(path, h)
		if err != nil {
			t.Fatal(err)
		}
		rw, err := w.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		if err := rw.DefineComm(7, 0, []int32{0, 1}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := rw.Stack([]uint64{uint64(rank*10 + i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range recs[rank] {
			if err := rw.Append(&recs[rank][i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return files
}

func TestMergedTraceHasEveryRankOfItsParts(t *testing.T) {
	recs := [][]Record{sequence(9000), sequence(300)}
	h := Header{Program: "p", Ranks: testRanks, ThresholdBytes: 1}
	files := perRank(t, h, recs)
	out := filepath.Join(t.TempDir(), "out.pwt")
	got, torn, err := Merge(out, files)
	if err != nil || torn != nil || got.Program != "p" {
		t.Fatalf("%+v, torn %v, %v", got, torn, err)
	}
	f := open(t, out)
	for rank, want := range recs {
		if got := readRank(t, f, rank); !slices.Equal(got, want) {
			t.Errorf("rank %d differs", rank)
		}
		rr, err := f.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		if got := rr.Frames(1); !slices.Equal(got, []uint64{uint64(rank * 10)}) {
			t.Errorf("rank %d: call site 1 is %v", rank, got)
		}
	}
}

func TestProgramsOfOneJobAreMerged(t *testing.T) {
	recs := [][]Record{sequence(10), sequence(20), sequence(30)}
	a := perRank(t, Header{Program: "./a x", Ranks: testRanks}, recs[:1])
	b := perRank(t, Header{Program: "./b", Ranks: testRanks}, recs)
	out := filepath.Join(t.TempDir(), "out.pwt")
	h, _, err := Merge(out, []string{a[0], b[1], b[2]})
	if err != nil || h.Program != "./a x : ./b" {
		t.Fatalf("%+v, %v", h, err)
	}
	if got := readRank(t, open(t, out), 2); !slices.Equal(got, recs[2]) {
		t.Error("rank 2 differs")
	}
}

func TestMergeTakesWhatIsLeftOfACutTraceAndSaysSo(t *testing.T) {
	recs := [][]Record{sequence(20_000), sequence(300)}
	files := perRank(t, Header{Ranks: testRanks}, recs)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], whole[:len(whole)*3/4], 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.pwt")
	_, torn, err := Merge(out, files)
	if te := (*TornError)(nil); err != nil || len(torn) != 1 || !errors.As(torn[0], &te) || te.Path != files[0] {
		t.Fatalf("torn %v, %v", torn, err)
	}
	f := open(t, out)
	got := readRank(t, f, 0)
	if len(got) == 0 || len(got) == len(recs[0]) || !slices.Equal(got, recs[0][:len(got)]) || f.Torn() != nil {
		t.Errorf("%d records of the cut trace, torn %v", len(got), f.Torn())
	}
}

func TestMergeRefusesOtherRunsAndLeavesNothing(t *testing.T) {
	recs := [][]Record{sequence(10)}
	one := perRank(t, Header{Program: "p", Ranks: testRanks}, recs)[0]
	other := perRank(t, Header{Program: "p", Ranks: testRanks + 1}, [][]Record{nil, sequence(10)})[1]
	damaged := perRank(t, Header{Program: "p", Ranks: testRanks}, [][]Record{nil, sequence(10)})[1]
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, []byte("PWTFR\x00\x00\x00"))
	b[at+frameInfoBytes+3] ^= 1
	if err := os.WriteFile(damaged, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for says, files := range map[string][]string{
		"run of 5 ranks":       {one, other},
		"rank 0 is in another": {one, one},
		"checksum":             {one, damaged},
		"no trace":             nil,
		"no such file":         {one, one + "x"},
	} {
		out := filepath.Join(t.TempDir(), "out.pwt")
		_, _, err := Merge(out, files)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, says)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}
