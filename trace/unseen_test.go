package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatWasNotSeenIsSummedUpByKind(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for rank := range 2 {
		path := filepath.Join(dir, fmt.Sprintf("%d.pwt", rank))
		w, err := Create(path, Header{Ranks: 2})
		if err != nil {
			t.Fatal(err)
		}
		rw, err := w.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(rw.DefinePlace(Place{8, 1, 0}), rw.DefinePlace(Place{8, 2 + rank, 1e9}), rw.Append(&Record{Op: OpBarrier, Peer: NoPeer}), rw.Unseen(Unseen{"copies", 3, 4096}),
			rw.Unseen(Unseen{fmt.Sprintf("of rank %d", rank), 0, 0}), w.Close())
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	merged := filepath.Join(dir, "all.pwt")
	if _, _, err := Merge(merged, paths); err != nil {
		t.Fatal(err)
	}
	f := open(t, merged)
	want := []Unseen{{"copies", 6, 8192}, {"of rank 0", 0, 0}, {"of rank 1", 0, 0}}
	if all, err := f.Unseen(); err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	rr, err := f.Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	if of := rr.tables.unseen; !slices.Equal(of, []Unseen{{"copies", 3, 4096}, {"of rank 1", 0, 0}}) {
		t.Errorf("rank 1: %+v", of)
	}
	if p := rr.Place(); p != (Place{8, 3, 1e9}) {
		t.Errorf("rank 1 ran on %+v", p)
	}
	// Nothing waits for what was not seen.
	if left, err := f.LeftOut(); err != nil || left != "" {
		t.Errorf("left out %q, %v", left, err)
	}
}

func TestKindsOfWhatWasNotSeenAreBounded(t *testing.T) {
	tab := newTables(1)
	var err error
	for range maxUnseen + 1 {
		if err = tab.addUnseen(Unseen{}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

// Merged or not, a trace of version 3 can't be taken for one whose buffers did not end.
func TestOldTracesSayWhatNobodyRecordedThen(t *testing.T) {
	dir := t.TempDir()
	path, merged := filepath.Join(dir, "old.pwt"), filepath.Join(dir, "all.pwt")
	write(t, path, [][]Record{sequence(3)}, 3)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(preludeMagic)] = 3
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Merge(merged, []string{path}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, merged} {
		f := open(t, p)
		if all, err := f.Unseen(); err != nil || !slices.Equal(all, []Unseen{{What: unseenBefore}}) {
			t.Errorf("%s: %+v, %v", p, all, err)
		}
		if got := readRank(t, f, 0); !slices.Equal(got, sequence(3)) {
			t.Errorf("%s: read %+v", p, got)
		}
	}
}
