package trace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFileAppearsOnlyWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.pwt")
	w, err := Create(path, Header{Ranks: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before Close: %v, want no file", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || !slices.Equal(names, []string{path}) {
		t.Fatalf("after Close there are %v, %v", names, err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Close: %v", err)
	}
	w, err = Create(filepath.Join(dir, "u.pwt"), Header{Ranks: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "u*")); len(names) > 0 {
		t.Errorf("Abort left %v", names)
	}
}

func TestWhatWasFlushedSurvivesACrashOfTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	w, err := Create(path, Header{Ranks: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abort() })
	rw, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rw.DefineComm(7, 0, []int32{0}); err != nil {
		t.Fatal(err)
	}
	want := Record{StartNs: 1, EndNs: 2, Op: OpBarrier, Comm: 7}
	if err := rw.Append(&want); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	partial, err := filepath.Glob(path + ".*.partial")
	if err != nil || len(partial) != 1 {
		t.Fatalf("partial files %q, %v", partial, err)
	}
	f := open(t, partial[0]) // the writer never closes: as if killed
	if got := readRank(t, f, 0); !slices.Equal(got, []Record{want}) || f.Torn() == nil {
		t.Errorf("read %+v, torn %v", got, f.Torn())
	}
}

func TestAppendRefusesWhatAReaderCouldNotTrust(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "t.pwt"), Header{Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abort() })
	rw, err := w.Rank(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := rw.DefineComm(3, 0, []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	good := Record{StartNs: 100, EndNs: 200, StartCPUNs: 50, EndCPUNs: 60, Op: OpSend, Dir: DirRead,
		Addr: 4096, Bytes: 8, Peer: 0, Comm: 3}
	if err := rw.Append(&good); err != nil {
		t.Fatal(err)
	}
	later := good
	later.StartNs, later.EndNs, later.StartCPUNs, later.EndCPUNs = 300, 400, 70, 80
	for name, tc := range map[string]struct {
		change func(*Record)
		want   error
	}{
		"starts before the last call ended":    {func(r *Record) { r.StartNs = 199 }, ErrTime},
		"ends before it starts":                {func(r *Record) { r.EndNs = 299 }, ErrTime},
		"processor time runs back":             {func(r *Record) { r.StartCPUNs = 59 }, ErrTime},
		"processor time ends before it starts": {func(r *Record) { r.EndCPUNs = 69 }, ErrTime},
		"other op at the times of the last":    {func(r *Record) { *r = good; r.Op = OpRecv }, ErrTime},
		"no op":                                {func(r *Record) { r.Op = OpInvalid }, ErrInvalid},
		"unknown op":                           {func(r *Record) { r.Op = numOps }, ErrInvalid},
		"unknown direction":                    {func(r *Record) { r.Dir = 3 }, ErrInvalid},
		"buffer beyond the address space":      {func(r *Record) { r.Addr = ^r.Addr | 4095 }, ErrInvalid},
		"peer outside of the run":              {func(r *Record) { r.Peer = 3 }, ErrInvalid},
		"communicator that was not defined":    {func(r *Record) { r.Comm = 4 }, ErrInvalid},
		"call site that was not defined":       {func(r *Record) { r.Stack = 1 }, ErrInvalid},
	} {
		r := later
		tc.change(&r)
		if err := rw.Append(&r); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	if err := rw.Append(&later); err != nil {
		t.Errorf("a good record after refused ones: %v", err)
	}
	if err := rw.DefineComm(3, 0, []int32{0}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a communicator defined twice: %v", err)
	}
	if err := rw.DefineComm(4, 0, []int32{0, 2}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a member outside of the run: %v", err)
	}
	if _, err := rw.Stack(make([]uint64, maxStackFrames+1)); !errors.Is(err, ErrLimit) {
		t.Errorf("a call site too deep: %v", err)
	}
	if _, err := w.Rank(2); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rank outside of the run: %v", err)
	}
	for _, h := range []Header{{}, {Ranks: -1}, {Ranks: MaxRanks + 1}} {
		if _, err := Create(filepath.Join(t.TempDir(), "x"), h); !errors.Is(err, ErrInvalid) {
			t.Errorf("header %+v: %v", h, err)
		}
	}
}

func TestCommunicatorOfTheLargestRunFitsAFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	w, err := Create(path, Header{Ranks: MaxRanks})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := w.Rank(MaxRanks - 1)
	if err != nil {
		t.Fatal(err)
	}
	members := make([]int32, MaxRanks)
	for i := range members {
		members[i] = int32(MaxRanks - 1 - i)
	}
	if err := rw.DefineComm(0, 0, members); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rr, err := open(t, path).Rank(MaxRanks - 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rr.Comm(0), members) {
		t.Error("members read back differ")
	}
}
