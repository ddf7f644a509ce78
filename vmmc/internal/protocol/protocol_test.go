package protocol

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
	"pinwheel/vmmc/internal/wire"
)

// world is an exporter and its importers, with the frames between them in order. It also is the model:
// what each import should have become.
type world struct {
	t        *rapid.T
	exporter *Exporter
	ends     map[Link]*end
	exports  map[uint32]*modelExport // until Gone
}

type modelExport struct {
	permits  Link // only this one, or all if 0
	max      int
	revoking bool
	queue    []Grant // notifications that are not consumed
}

type end struct {
	w        *world
	link     Link
	importer *Importer
	to, from []wire.Frame // the exporter
	imports  map[uint64]*modelImport
	up       bool
}

type modelImport struct {
	export  uint32
	state   string // waiting, granted, denied, released
	revoked bool
}

func (w *world) Send(to Link, f *wire.Frame) { w.ends[to].from = append(w.ends[to].from, *f) }

func (w *world) Gone(id uint32) {
	if w.exports[id] == nil || !w.exports[id].revoking {
		w.t.Fatalf("export %d is gone, which nobody asked for", id)
	}
	for _, e := range w.ends {
		for n, i := range e.imports {
			revoked := func(f wire.Frame) bool { return f.Type == wire.Revoke && f.Number == n }
			if e.up && i.export == id && i.state == "granted" && slices.ContainsFunc(e.from, revoked) {
				w.t.Fatalf("export %d is gone, and import %d does not know", id, n)
			}
		}
	}
	delete(w.exports, id)
}

func (e *end) Send(f *wire.Frame) { e.to = append(e.to, *f) }

// pick draws an import of e in a state; 0 if there is none.
func (e *end) pick(state string) uint64 {
	var numbers []uint64
	for n, i := range e.imports {
		if i.state == state {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 || !e.up {
		return 0
	}
	slices.Sort(numbers)
	return rapid.SampledFrom(numbers).Draw(e.w.t, "import")
}

// deliver carries the oldest frame in one direction.
func (e *end) deliver(toExporter bool) bool {
	if toExporter && len(e.to) > 0 {
		f := e.to[0]
		e.to = e.to[1:]
		id, err := e.w.exporter.Receive(e.link, &f)
		if err != nil {
			e.w.t.Fatalf("%+v: %v", f, err)
		}
		if x := e.w.exports[id]; f.Type == wire.Data || f.Type == wire.Notify {
			if x == nil {
				e.w.t.Fatalf("%+v for export %d, which is gone", f, id)
			}
			if f.Type == wire.Notify {
				x.queue = append(x.queue, Grant{e.link, f.Number})
			}
		}
		return true
	}
	if !toExporter && len(e.from) > 0 {
		f := e.from[0]
		e.from = e.from[1:]
		event, err := e.importer.Receive(&f)
		if err != nil {
			e.w.t.Fatalf("%+v: %v", f, err)
		}
		i := e.imports[f.Number]
		before := map[Event]string{Granted: "waiting", Denied: "waiting", Revoked: "granted"}
		switch {
		case event != Nothing && i.state != before[event]:
			e.w.t.Fatalf("%+v when import %d is %s", f, f.Number, i.state)
		case event == Granted:
			i.state = "granted"
		case event == Denied:
			i.state = "denied"
		case event == Revoked:
			i.revoked = true
		}
		return true
	}
	return false
}

func (e *end) down() {
	for len(e.to) > 0 && rapid.Bool().Draw(e.w.t, "arrives still") {
		e.deliver(true)
	}
	e.up, e.to, e.from = false, nil, nil
	e.w.exporter.LinkDown(e.link)
}

// settle delivers, consumes and answers whatever there is.
func (w *world) settle() {
	for again := true; again; {
		again = false
		for _, e := range w.ends {
			for e.up && (e.deliver(true) || e.deliver(false)) {
				again = true
			}
			for n, i := range e.imports {
				if e.up && i.state == "granted" && i.revoked {
					i.state, again = "released", true
					e.importer.Release(n)
				}
			}
		}
		for _, x := range w.exports {
			for _, g := range x.queue {
				w.exporter.Consumed(g)
				again = true
			}
			x.queue = nil
		}
	}
}

func TestImportsBecomeWhatTheExportsPermit(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, ends: map[Link]*end{}, exports: map[uint32]*modelExport{}}
		w.exporter = NewExporter(w)
		id := rapid.Uint32Range(1, 3)
		var links []Link
		connect := func() {
			e := &end{w: w, link: Link(len(links) + 1), imports: map[uint64]*modelImport{}, up: true}
			e.importer = NewImporter(e.Send)
			links = append(links, e.link)
			w.ends[e.link] = e
			w.exporter.LinkUp(e.link, Identity{Name: fmt.Sprint(e.link)})
		}
		connect()
		connect()
		any := func() *end { return w.ends[rapid.SampledFrom(links).Draw(t, "link")] }
		t.Repeat(map[string]func(*rapid.T){
			"connect": func(*rapid.T) { connect() },
			"disconnect": func(*rapid.T) {
				if e := any(); e.up {
					e.down()
				}
			},
			"export": func(t *rapid.T) {
				id, x := id.Draw(t, "id"), &modelExport{max: rapid.IntRange(1, 3).Draw(t, "max")}
				x.permits = Link(rapid.IntRange(0, len(links)).Draw(t, "permits"))
				known := w.exports[id]
				if known == nil {
					w.exports[id] = x
				}
				credits := rapid.Uint64Range(1, 9).Draw(t, "credits")
				err := w.exporter.Export(id, Terms{Bytes: 100, MaxImporters: x.max, Credits: credits,
					Permits: func(who Identity) bool { return x.permits == 0 || who.Name == fmt.Sprint(x.permits) },
					Shared:  func(Link) bool { return false }})
				if (err == nil) != (known == nil) {
					t.Fatalf("export of %d, which exists: %v, gives %v", id, known != nil, err)
				}
			},
			"unexport": func(t *rapid.T) {
				id := id.Draw(t, "id")
				x := w.exports[id]
				good := x != nil && !x.revoking
				if good {
					x.revoking = true
				}
				if err := w.exporter.Unexport(id); (err == nil) != good {
					t.Fatalf("unexport: %v", err)
				}
			},
			"import": func(t *rapid.T) {
				if e := any(); e.up {
					id := id.Draw(t, "id")
					e.imports[e.importer.Import(id)] = &modelImport{export: id, state: "waiting"}
				}
			},
			"give up": func(*rapid.T) {
				e := any()
				if n := e.pick("waiting"); n != 0 {
					e.imports[n].state = "released"
					e.importer.Release(n)
				}
			},
			"send": func(t *rapid.T) {
				e := any()
				if n := e.pick("granted"); n != 0 {
					offset := rapid.Uint64Range(0, 99).Draw(t, "offset")
					e.Send(&wire.Frame{Type: wire.Data, Number: n, Offset: offset, Bytes: 100 - offset})
					if rapid.Bool().Draw(t, "notify") {
						e.importer.Notify(n, offset, 100-offset, 0)
					}
				}
			},
			"unimport": func(*rapid.T) {
				e := any()
				if n := e.pick("granted"); n != 0 {
					e.imports[n].state = "released"
					e.importer.Release(n)
				}
			},
			"deliver": func(t *rapid.T) {
				if e := any(); e.up {
					e.deliver(rapid.Bool().Draw(t, "to the exporter"))
				}
			},
			"settle": func(t *rapid.T) {
				w.settle()
				importers := map[uint32]int{}
				for _, e := range w.ends {
					for n, i := range e.imports {
						if x := w.exports[i.export]; e.up && x != nil {
							allowed := x.permits == 0 || x.permits == e.link
							if i.state == "granted" {
								importers[i.export]++
							}
							if i.state == "waiting" || i.state == "granted" && !allowed {
								t.Fatalf("import %d of export %d is %s", n, i.export, i.state)
							}
						} else if e.up && i.state == "granted" {
							t.Fatalf("import %d has export %d, which is gone", n, i.export)
						}
					}
				}
				for id, x := range w.exports {
					if x.revoking || importers[id] > x.max {
						t.Fatalf("export %d has %d importers of %d; revoking: %v", id, importers[id], x.max, x.revoking)
					}
				}
				for _, e := range w.ends {
					for n, i := range e.importer.imports {
						if e.up && len(i.notify) > 0 {
							t.Fatalf("import %d has %d notifications without a credit", n, len(i.notify))
						}
					}
				}
			},
		})
	})
}

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
