package trace

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

func TestModulesOfARankAreReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pwt")
	w, err := Create(path, Header{Program: "app -n 3", Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := []Module{{0, "app", "0123"}, {0xfffe, "libsolver.so.2", ""}}
	for rank := range 2 {
		rw, err := w.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range want[:rank+1] {
			if err := rw.DefineModule(m); err != nil {
				t.Fatal(err)
			}
		}
		stack, err := rw.Stack([]uint64{0x10, 0xfffe<<48 | 0x20})
		if err == nil {
			err = rw.Append(&Record{Op: OpBarrier, Peer: NoPeer, Stack: stack})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rank := range 2 {
		r, err := f.Rank(rank)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Modules(); !slices.Equal(got, want[:rank+1]) {
			t.Errorf("rank %d: %+v", rank, got)
		}
	}
}

func TestModulesAreBounded(t *testing.T) {
	tab := newTables(1)
	var err error
	for range maxModules + 1 {
		if err = tab.addModule(Module{}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}
