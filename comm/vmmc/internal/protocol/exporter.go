package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"pinwheel/comm/vmmc/internal/wire"
)

// Errors of Export and Unexport.
var (
	ErrExported    = errors.New("identifier is exported already")
	ErrNotExported = errors.New("identifier is not exported")
)

// maxWaiting is how many imports of one connection may wait for their exports at a time.
const maxWaiting = 1024

// Link names a connection.
type Link uint64

// Identity says who is at the other end of a connection, as its transport has proved.
type Identity struct {
	Name string
	UID  int64 // user on this machine; negative: not known
}

// Terms are what an Export offers.
type Terms struct {
	Bytes        uint64
	Offset       uint64                  // in the shared memory, for importers that can map it
	Shared       func(Link) bool         // whether the importer at this connection can
	Permits      func(who Identity) bool // nobody else may import
	MaxImporters int                     // at a time
	MaxPerPeer   int                     // of these; 0: no bound of its own
	Credits      uint64                  // notifications that an importer may have outstanding, at least 1
}

// ExporterDriver carries out what an Exporter decides. Its methods are called in the middle of those of
// the Exporter: they must neither call it nor block.
type ExporterDriver interface {
	Send(to Link, f *wire.Frame)
	// Gone says that nothing can arrive for export id any more.
	Gone(id uint32)
}

// Grant names an import that was granted: its connection, and its number there.
type Grant struct {
	Link   Link
	Number uint64
}

// Exporter has the exports of a node.
type Exporter struct {
	driver  ExporterDriver
	exports map[uint32]*export
	links   map[Link]*holder
	waiting map[uint32]map[Grant]uint64 // for exports; with the place in the order in which they came
	asked   uint64                      // imports that waited, ever
}

type export struct {
	Terms
	id       uint32
	grants   map[Grant]*granted
	revoking bool
}

type granted struct {
	export   *export
	credits  uint64 // that the importer has
	consumed uint64 // credits to give back
}

// holder is what the exporter knows of a connection.
type holder struct {
	who     Identity
	last    uint64            // number
	waiting map[uint64]uint32 // imports, with the export for which they wait
	grants  map[uint64]*granted
}

// NewExporter returns an Exporter without exports.
func NewExporter(d ExporterDriver) *Exporter {
	return &Exporter{
		driver: d, exports: map[uint32]*export{}, links: map[Link]*holder{}, waiting: map[uint32]map[Grant]uint64{},
	}
}

// Export offers a buffer by the name id, first to the imports that wait for it, in the order in which
// they came. The credits of Terms must not be 0.
func (x *Exporter) Export(id uint32, t Terms) error {
	if x.exports[id] != nil {
		return fmt.Errorf("%w: %d", ErrExported, id)
	}
	e := &export{Terms: t, id: id, grants: map[Grant]*granted{}}
	x.exports[id] = e
	waiting := x.waiting[id]
	delete(x.waiting, id)
	came := func(a, b Grant) int { return cmp.Compare(waiting[a], waiting[b]) }
	for _, g := range slices.SortedFunc(maps.Keys(waiting), came) {
		delete(x.links[g.Link].waiting, g.Number)
		x.answer(e, g)
	}
	return nil
}

// Unexport revokes every grant of an export. Once the importers have released theirs, or their
// connections are gone, the driver hears that the export is Gone; until then the identifier is in use.
func (x *Exporter) Unexport(id uint32) error {
	e := x.exports[id]
	if e == nil || e.revoking {
		return fmt.Errorf("%w: %d", ErrNotExported, id)
	}
	e.revoking = true
	for g := range e.grants {
		x.driver.Send(g.Link, &wire.Frame{Type: wire.Revoke, Number: g.Number})
	}
	x.goneIfFree(e)
	return nil
}

func (x *Exporter) goneIfFree(e *export) {
	if e.revoking && len(e.grants) == 0 {
		delete(x.exports, e.id)
		x.driver.Gone(e.id)
	}
}

// Holders returns the connections that have a grant of the export.
func (x *Exporter) Holders(id uint32) (links []Link) {
	if e := x.exports[id]; e != nil {
		for g := range e.grants {
			if !slices.Contains(links, g.Link) {
				links = append(links, g.Link)
			}
		}
	}
	return links
}

// Importers returns how many imports of the export were granted.
func (x *Exporter) Importers(id uint32) int {
	e := x.exports[id]
	if e == nil {
		return 0
	}
	return len(e.grants)
}

// Waiting returns how many imports wait for their exports.
func (x *Exporter) Waiting() (n int) {
	for _, h := range x.links {
		n += len(h.waiting)
	}
	return n
}

// LinkUp adds a connection.
func (x *Exporter) LinkUp(l Link, who Identity) {
	x.links[l] = &holder{who: who, waiting: map[uint64]uint32{}, grants: map[uint64]*granted{}}
}

// LinkDown forgets a connection. Nothing that came from it may be on its way to memory any more.
func (x *Exporter) LinkDown(l Link) {
	h := x.links[l]
	for number := range h.waiting {
		x.unwait(h, Grant{l, number})
	}
	delete(x.links, l)
	for number, g := range h.grants {
		delete(g.export.grants, Grant{l, number})
		x.goneIfFree(g.export)
	}
}

// Receive takes a frame of an importer, but for those that concern the connection alone. For a Data and a
// Notify frame it returns the export. The driver puts the bytes there, or tells whoever wants the
// notification; its credit goes back by Consumed. ErrProtocol ends the connection.
func (x *Exporter) Receive(l Link, f *wire.Frame) (id uint32, err error) {
	h := x.links[l]
	switch f.Type {
	case wire.Import:
		return 0, x.requested(l, h, f)
	case wire.Release:
		return 0, x.released(l, h, f.Number)
	case wire.Data, wire.Notify:
		g := h.grants[f.Number]
		if g == nil {
			return 0, fmt.Errorf("%w: message for import %d, which was not granted", ErrProtocol, f.Number)
		}
		if total := g.export.Bytes; f.Offset > total || f.Bytes > total-f.Offset {
			return 0, fmt.Errorf("%w: %d bytes at %d of %d", ErrProtocol, f.Bytes, f.Offset, total)
		}
		if f.Type == wire.Notify {
			if g.credits == 0 {
				return 0, fmt.Errorf("%w: notification without a credit", ErrProtocol)
			}
			if g.credits--; g.credits == 0 {
				x.credit(Grant{l, f.Number}, g)
			}
		}
		return g.export.id, nil
	}
	return 0, fmt.Errorf("%w: frame of type %d from an importer", ErrProtocol, f.Type)
}

func (x *Exporter) requested(l Link, h *holder, f *wire.Frame) error {
	if f.Number <= h.last {
		return fmt.Errorf("%w: import %d after %d", ErrProtocol, f.Number, h.last)
	}
	h.last = f.Number
	g := Grant{l, f.Number}
	if e := x.exports[f.Export]; e != nil && !e.revoking {
		x.answer(e, g)
		return nil
	}
	if len(h.waiting) == maxWaiting {
		x.deny(g, wire.TooManyWaiting)
		return nil
	}
	h.waiting[g.Number] = f.Export
	if x.waiting[f.Export] == nil {
		x.waiting[f.Export] = map[Grant]uint64{}
	}
	x.asked++
	x.waiting[f.Export][g] = x.asked
	return nil
}

// unwait forgets an import that waits.
func (x *Exporter) unwait(h *holder, g Grant) {
	id := h.waiting[g.Number]
	delete(h.waiting, g.Number)
	delete(x.waiting[id], g)
	if len(x.waiting[id]) == 0 {
		delete(x.waiting, id)
	}
}

// full tells whether an export has as many imports as it allows, of all or of one peer.
func (x *Exporter) full(e *export, who Identity) bool {
	if len(e.grants) >= e.MaxImporters {
		return true
	}
	if e.MaxPerPeer == 0 {
		return false
	}
	of := 0
	for g := range e.grants {
		if x.links[g.Link].who == who {
			of++
		}
	}
	return of >= e.MaxPerPeer
}

// answer grants or denies an import of e.
func (x *Exporter) answer(e *export, g Grant) {
	h := x.links[g.Link]
	switch {
	case !e.Permits(h.who):
		x.deny(g, wire.NotPermitted)
	case x.full(e, h.who):
		x.deny(g, wire.TooManyImporters)
	default:
		is := &granted{export: e, credits: e.Credits}
		e.grants[g], h.grants[g.Number] = is, is
		f := wire.Frame{
			Type: wire.Grant, Number: g.Number, Bytes: e.Bytes, Count: e.Credits, Shared: e.Shared(g.Link),
			Export: e.id, // for the driver: it is not coded
		}
		if f.Shared {
			f.Offset = e.Offset
		}
		x.driver.Send(g.Link, &f)
	}
}

func (x *Exporter) deny(g Grant, code uint8) {
	x.driver.Send(g.Link, &wire.Frame{Type: wire.Deny, Number: g.Number, Code: code})
}

func (x *Exporter) released(l Link, h *holder, number uint64) error {
	if number > h.last || number == 0 {
		return fmt.Errorf("%w: release of import %d, the last was %d", ErrProtocol, number, h.last)
	}
	if g := h.grants[number]; g != nil {
		delete(h.grants, number)
		delete(g.export.grants, Grant{l, number})
		x.goneIfFree(g.export)
		return nil
	}
	if _, waits := h.waiting[number]; waits { // else it was denied, and that crossed this frame
		x.unwait(h, Grant{l, number})
	}
	return nil
}

// Consumed gives back the credit of a notification. The importer hears of several at once, or as soon as it
// has none left.
func (x *Exporter) Consumed(by Grant) {
	h := x.links[by.Link]
	if h == nil || h.grants[by.Number] == nil {
		return
	}
	g := h.grants[by.Number]
	g.consumed++
	if g.consumed >= g.export.Credits/4 || g.credits == 0 {
		x.credit(by, g)
	}
}

func (x *Exporter) credit(by Grant, g *granted) {
	if g.consumed > 0 {
		g.credits += g.consumed
		x.driver.Send(by.Link, &wire.Frame{Type: wire.Credit, Number: by.Number, Count: g.consumed})
		g.consumed = 0
	}
}
