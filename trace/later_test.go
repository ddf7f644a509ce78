package trace

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// What a recorder learns at the end of a request is in the record that started it.
func TestWhatBecomesKnownLaterIsPutIntoTheRecord(t *testing.T) {
	dir := t.TempDir()
	path, merged := filepath.Join(dir, "0.pwt"), filepath.Join(dir, "all.pwt")
	w, err := Create(path, Header{Ranks: 3})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rw.DefineComm(2, 0xfeed, []int32{2, Elsewhere, 0}); err != nil {
		t.Fatal(err)
	}
	records := []Record{
		{Op: OpIrecv, Dir: DirWrite, Addr: 4096, Bytes: 8, Peer: AnySource, Tag: AnyTag, Comm: 2, Req: 1},
		{Op: OpIrecv, Dir: DirWrite, Addr: 4096, Bytes: 8, Peer: 1, Tag: 4, Comm: 2, Req: 2},
		{Op: OpSendrecv, Dir: DirRead, Addr: 4096, Bytes: 8, Peer: 1, Tag: 4, Comm: 2, Req: 3},
		{Op: OpSendrecv, Dir: DirWrite, Addr: 8192, Bytes: 8, Peer: AnySource, Tag: 5, Comm: 2, Req: 3},
		{Op: OpIrecv, Dir: DirWrite, Addr: 4096, Bytes: 8, Peer: AnySource, Comm: 2, Req: 4},
		{Op: OpWait, Peer: NoPeer, Req: 1},
	}
	for i := range records {
		ns := int64(100 * (i + 1))
		if records[i].Op == OpSendrecv {
			ns = 300 // one call
		}
		records[i].StartNs, records[i].EndNs = ns, ns
		if err := rw.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(w.Flush(), rw.Matched(1, 2, 9), rw.Matched(2, NoPeer, 0), rw.Matched(3, Elsewhere, 5),
		rw.LeaveOut("calls of other threads", 12))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		req  uint32
		peer int32
	}{{0, 1}, {5, 3}, {5, -4}} {
		if err := rw.Matched(bad.req, bad.peer, 0); !errors.Is(err, ErrInvalid) {
			t.Errorf("request %d matched with %d: %v", bad.req, bad.peer, err)
		}
	}
	records[0].Peer, records[0].Tag = 2, 9
	records[1].Peer = NoPeer
	records[3].Peer = Elsewhere
	if _, _, err := Merge(merged, []string{path}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, merged} {
		f := open(t, p)
		if l, err := f.LeftOut(); err != nil || l != "12 calls of other threads" {
			t.Errorf("%s: %q, %v", p, l, err)
		}
		if got := readRank(t, f, 0); !slices.Equal(got, records) {
			t.Errorf("%s: read\n%+v, want\n%+v", p, got, records)
		}
		rr, err := f.Rank(0)
		if err != nil {
			t.Fatal(err)
		}
		if n := rr.CommName(2); n != 0xfeed || !slices.Equal(rr.Comm(2), []int32{2, Elsewhere, 0}) || rr.CommName(3) != 0 {
			t.Errorf("%s: communicator %x of %v", p, n, rr.Comm(2))
		}
		if l := rr.LeftOut(); !slices.Equal(l, []LeftOut{{"calls of other threads", 12}}) {
			t.Errorf("%s: left out %+v", p, l)
		}
	}
}

// The definitions of version 1.
func TestCommunicatorsOfOldTracesHaveNoName(t *testing.T) {
	tb := newTables(testRanks)
	if err := tb.load([]byte{defComm, 14, 2, 3, 0}); err != nil {
		t.Fatal(err)
	}
	if c := tb.comms[7]; c.name != 0 || !slices.Equal(c.members, []int32{3, 0}) {
		t.Errorf("%+v", c)
	}
	for _, raw := range [][]byte{{defComm, 14, 1, 4}, {defNamedComm, 14, 1, 1, 1},
		{defMatch, 1, 1}, {defLeftOut, 1, 9, 'x'},
		{defUnseen, 1, 1}, {defPlace, 2, 1}, {defUnseen, 1, 1, 2, 'x'}, {defModule, 1, 1, 'x'}, {defModule, 0xff, 0xff, 0x7f, 0, 0}} {
		tb := newTables(testRanks)
		if err := tb.load(raw); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v", raw, err)
		}
	}
}
