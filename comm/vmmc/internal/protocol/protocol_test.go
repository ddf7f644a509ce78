package protocol

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pinwheel/comm/vmmc/internal/wire"
)

// recorder keeps what an Exporter or an Importer does.
type recorder struct {
	frames []wire.Frame
	gone   []uint32
}

func (r *recorder) Send(_ Link, f *wire.Frame)          { r.frames = append(r.frames, *f) }
func (r *recorder) Notified(uint32, Grant, *wire.Frame) {}
func (r *recorder) Gone(id uint32)                      { r.gone = append(r.gone, id) }
func everybody(Identity) bool                           { return true }
func alone(Link) bool                                   { return false }
func receive(x *Exporter, f wire.Frame) error           { _, err := x.Receive(1, &f); return err }

// granted returns an exporter of 100 bytes as export 7, and import 1 of it with 2 credits.
func grantedOne(t *testing.T) (*Exporter, *recorder) {
	r := &recorder{}
	x := NewExporter(r)
	x.LinkUp(1, Identity{})
	terms := Terms{Bytes: 100, Permits: everybody, Shared: alone, MaxImporters: 9, Credits: 2}
	if err := errors.Join(x.Export(7, terms),
		receive(x, wire.Frame{Type: wire.Import, Number: 1, Export: 7})); err != nil {
		t.Fatal(err)
	}
	return x, r
}

func TestFramesThatBreakTheRulesEndTheConnection(t *testing.T) {
	for what, f := range map[string]wire.Frame{
		"a byte beyond the end":         {Type: wire.Data, Number: 1, Offset: 100, Bytes: 1},
		"a byte too many":               {Type: wire.Data, Number: 1, Offset: 1, Bytes: 100},
		"an offset that overflows":      {Type: wire.Data, Number: 1, Offset: ^uint64(0), Bytes: 2},
		"an import that does not exist": {Type: wire.Data, Number: 2, Bytes: 1},
		"notification beyond the end":   {Type: wire.Notify, Number: 1, Offset: 101},
		"import with an old number":     {Type: wire.Import, Number: 1, Export: 7},
		"release of a future import":    {Type: wire.Release, Number: 2},
		"release of no import":          {Type: wire.Release},
		"a frame of exporters":          {Type: wire.Grant, Number: 1},
	} {
		x, _ := grantedOne(t)
		if err := receive(x, f); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", what, err)
		}
	}
	x, _ := grantedOne(t)
	notify := wire.Frame{Type: wire.Notify, Number: 1, Bytes: 100}
	if err := errors.Join(receive(x, notify), receive(x, notify)); err != nil {
		t.Error(err)
	}
	if err := receive(x, notify); !errors.Is(err, ErrProtocol) {
		t.Errorf("a third notification with two credits: %v", err)
	}
}

func TestImportsThatWaitAreLimited(t *testing.T) {
	r := &recorder{}
	x := NewExporter(r)
	x.LinkUp(1, Identity{})
	for n := range uint64(maxWaiting + 1) {
		if err := receive(x, wire.Frame{Type: wire.Import, Number: n + 1, Export: 7}); err != nil {
			t.Fatal(err)
		}
	}
	want := wire.Frame{Type: wire.Deny, Number: maxWaiting + 1, Code: wire.TooManyWaiting}
	if len(r.frames) != 1 || r.frames[0] != want {
		t.Errorf("got %+v", r.frames)
	}
}

func TestImportsThatWaitAreServedInTheirOrder(t *testing.T) {
	r := &recorder{}
	x := NewExporter(r)
	for l := range Link(3) {
		x.LinkUp(l, Identity{Name: fmt.Sprint(l)})
	}
	for n := range uint64(20) {
		f := wire.Frame{Type: wire.Import, Number: n + 1, Export: 7}
		if _, err := x.Receive(Link(n%3), &f); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []uint64{1, 5, 20} { // these lose interest
		f := wire.Frame{Type: wire.Release, Number: n}
		if _, err := x.Receive(Link((n-1)%3), &f); err != nil {
			t.Fatal(err)
		}
	}
	x.LinkDown(2) // with 3, 6, 9, 12, 15, 18
	if n := x.Waiting(); n != 20-3-6 {
		t.Errorf("%d wait", n)
	}
	err := x.Export(7, Terms{Bytes: 1, Permits: everybody, Shared: alone, MaxImporters: 6, Credits: 1})
	if err != nil {
		t.Fatal(err)
	}
	var granted, denied []uint64
	for _, f := range r.frames {
		if f.Type == wire.Grant {
			granted = append(granted, f.Number)
		} else {
			denied = append(denied, f.Number)
		}
	}
	// 4, 7, 10, 13, 16 and 19 of link 0, and 2, 8, 11, 14 and 17 of link 1.
	if !slices.Equal(granted, []uint64{2, 4, 7, 8, 10, 11}) || len(denied) != 5 || !slices.IsSorted(denied) {
		t.Errorf("granted %v, denied %v", granted, denied)
	}
	if len(x.waiting) > 0 || x.Waiting() > 0 {
		t.Errorf("%d are left", x.Waiting())
	}
}

func TestOnePeerHasAShareOfAnExport(t *testing.T) {
	r := &recorder{}
	x := NewExporter(r)
	same := Identity{Name: "a", UID: 7}
	for l, who := range []Identity{same, same, {Name: "a", UID: 8}} {
		x.LinkUp(Link(l), who)
	}
	if err := x.Export(7, Terms{Bytes: 1, Permits: everybody, Shared: alone, MaxImporters: 9, MaxPerPeer: 2, Credits: 1}); err != nil {
		t.Fatal(err)
	}
	for k, l := range []Link{0, 1, 1, 2, 2} { // the third is one too many of the same peer
		f := wire.Frame{Type: wire.Import, Number: uint64(k + 1), Export: 7}
		if _, err := x.Receive(l, &f); err != nil {
			t.Fatal(err)
		}
	}
	for k, f := range r.frames {
		if denied := f.Type == wire.Deny && f.Code == wire.TooManyImporters; denied != (k == 2) {
			t.Errorf("answer %d: %+v", k, f)
		}
	}
}

func TestUnexportWaitsForTheRelease(t *testing.T) {
	x, r := grantedOne(t)
	if err := x.Unexport(7); err != nil || len(r.gone) > 0 {
		t.Fatalf("%v; gone: %v", err, r.gone)
	}
	if err := receive(x, wire.Frame{Type: wire.Data, Number: 1, Bytes: 1}); err != nil {
		t.Errorf("a message that was on its way: %v", err)
	}
	if got := x.Holders(7); !slices.Equal(got, []Link{1}) {
		t.Errorf("holders: %v", got)
	}
	if err := receive(x, wire.Frame{Type: wire.Release, Number: 1}); err != nil || !slices.Equal(r.gone, []uint32{7}) {
		t.Errorf("%v; gone: %v", err, r.gone)
	}
	if err := receive(x, wire.Frame{Type: wire.Data, Number: 1, Bytes: 1}); !errors.Is(err, ErrProtocol) {
		t.Errorf("a message after the release: %v", err)
	}
}

// Whatever frames a peer sends, neither state machine fails.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{byte(wire.Import), 1, 7, 0, byte(wire.Data), 1, 9, 9, byte(wire.Release), 1, 0, 0})
	f.Add([]byte{byte(wire.Grant), 1, 1, 1, byte(wire.Credit), 1, 1, 1, byte(wire.Revoke), 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &recorder{}
		x := NewExporter(r)
		x.LinkUp(1, Identity{})
		terms := Terms{Bytes: 100, Permits: everybody, Shared: alone, MaxImporters: 2, Credits: 2}
		_ = x.Export(7, terms)
		m := NewImporter(func(*wire.Frame) {})
		m.Import(1)
		for ; len(b) >= 4; b = b[4:] {
			frame := wire.Frame{Type: wire.Type(b[0]), Number: uint64(b[1]), Export: uint32(b[2]),
				Offset: uint64(b[2]), Bytes: uint64(b[3]), Count: uint64(b[3])}
			_ = receive(x, frame)
			_, _ = m.Receive(&frame)
		}
		x.LinkDown(1)
		if err := x.Unexport(7); err != nil || !slices.Equal(r.gone, []uint32{7}) {
			t.Errorf("%v; gone: %v", err, r.gone)
		}
	})
}
