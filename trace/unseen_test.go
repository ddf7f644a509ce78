package trace

import (
	"errors"
	"fmt"
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
		err = errors.Join(rw.Append(&Record{Op: OpBarrier, Peer: NoPeer}), rw.Unseen(Unseen{"copies", 3, 4096}),
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
	if of := rr.Unseen(); !slices.Equal(of, []Unseen{{"copies", 3, 4096}, {"of rank 1", 0, 0}}) {
		t.Errorf("rank 1: %+v", of)
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
