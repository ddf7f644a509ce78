package protocol

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
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
