package lease

import (
	"math"
	"slices"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

const (
	us = int64(1_000)
	ms = 1_000 * us
)

// wayNs is how long a message takes from one end to the other, registerNs a registration at the exporter.
const wayNs, registerNs = 20 * us, 100 * us

var costs = verbs.Costs{
	Register: verbs.Cost{FixedNs: float64(2*wayNs + registerNs)}, Deregister: verbs.Cost{FixedNs: float64(wayNs)},
}

// world is importers and one exporter in virtual time.
type world struct {
	fatalf     func(string, ...any)
	nowNs      int64
	events     []event // in no order
	lessor     *Lessor
	limits     Limits
	registerNs int64 // what a registration takes at the exporter
	importers  []*importer
	registered map[protocol.Grant]bool
	sizes      map[protocol.Grant]uint64

	registrations, refuse int // each refuse-th fails; 0: none
}

type event struct {
	atNs int64
	do   func()
}

// importer drives a Holder.
type importer struct {
	w      *world
	link   protocol.Link
	h      *Holder
	lastNs int64 // when what is on its way to the exporter arrives, at the latest
	backNs int64
	using  map[uint64]int // messages under way
	needs  int
	late   int
}

func newWorld(fatalf func(string, ...any), importers int, l Limits) *world {
	w := &world{fatalf: fatalf, limits: l, registerNs: registerNs, registered: map[protocol.Grant]bool{}, sizes: map[protocol.Grant]uint64{}}
	w.lessor = NewLessor(w, l)
	for n := range importers {
		i := &importer{w: w, link: protocol.Link(n + 1), using: map[uint64]int{}}
		i.h = NewHolder(i, HolderOptions{IdleNs: 1000 * ms, Costs: costs})
		w.importers = append(w.importers, i)
	}
	return w
}

// at has something happen.
func (w *world) at(ns int64, do func()) { w.events = append(w.events, event{ns, do}) }

// run lets time pass, and Holders do what is due.
func (w *world) run(untilNs int64) {
	for {
		next := untilNs
		for _, i := range w.importers {
			next = min(next, max(i.h.Next(w.nowNs), w.nowNs+1))
		}
		first := -1
		for k, e := range w.events {
			if e.atNs <= next && (first < 0 || e.atNs < w.events[first].atNs) {
				first = k
			}
		}
		if first < 0 {
			w.nowNs = next
			if next >= untilNs {
				return
			}
			continue
		}
		e := w.events[first]
		w.events = slices.Delete(w.events, first, first+1)
		w.nowNs = max(w.nowNs, e.atNs)
		e.do()
	}
}

// toExporter delivers in order, after delayNs more than the way takes.
func (i *importer) toExporter(do func() error) {
	i.lastNs = max(i.lastNs+1, i.w.nowNs+wayNs)
	i.w.at(i.lastNs, func() {
		if err := do(); err != nil {
			i.w.fatalf("the exporter: %v", err)
		}
	})
}

func (i *importer) toImporter(delayNs int64, do func()) {
	i.backNs = max(i.backNs+1, i.w.nowNs+delayNs+wayNs)
	i.w.at(i.backNs, do)
}

func (i *importer) grant(number uint64) protocol.Grant {
	return protocol.Grant{Link: i.link, Number: number}
}

// Renew implements HolderDriver, as does Yield.
func (i *importer) Renew(number uint64) {
	g := i.grant(number)
	i.toExporter(func() error { return i.w.lessor.Renew(g, i.w.sizes[g]) })
}

func (i *importer) Yield(number uint64) {
	g := i.grant(number)
	i.toExporter(func() error {
		delete(i.w.registered, g)
		if i.w.refuse > 0 {
			i.w.lessor.Drop(g) // it may have been refused meanwhile
			return nil
		}
		return i.w.lessor.Yielded(g)
	})
}

// Grant implements LessorDriver, as does Recall.
func (w *world) Grant(g protocol.Grant) {
	w.registered[g] = true
	peer, all := uint64(0), uint64(0)
	for o := range w.registered {
		all += wholePages(w.sizes[o])
		if o.Link == g.Link {
			peer += wholePages(w.sizes[o])
		}
	}
	if all > w.limits.Bytes || peer > w.limits.PeerBytes {
		w.fatalf("%d bytes are registered, %d of one peer: %+v", all, peer, w.limits)
	}
	i := w.importers[g.Link-1]
	w.registrations++
	refused := w.refuse > 0 && w.registrations%w.refuse == 0
	w.at(w.nowNs+w.registerNs, func() { // what is sent meanwhile comes first
		if !w.registered[g] {
			return // it was yielded
		}
		answer := i.h.Granted
		if refused {
			delete(w.registered, g)
			w.lessor.Drop(g)
			answer = i.h.Refused
		}
		i.toImporter(0, func() {
			if err := answer(g.Number, w.nowNs); err != nil {
				w.fatalf("the importer: %v", err)
			}
		})
	})
}

func (w *world) Recall(g protocol.Grant) {
	i := w.importers[g.Link-1]
	i.toImporter(0, func() { i.h.Recalled(g.Number, w.nowNs) })
}

func (i *importer) add(number, bytes uint64) {
	i.w.sizes[i.grant(number)] = bytes
	i.h.Add(number, bytes)
}

// message is one of durationNs. It tells whether there was a lease for it.
func (i *importer) message(number uint64, durationNs int64) (leased bool) {
	w, g, startNs := i.w, i.grant(number), i.w.nowNs
	leased = i.h.Use(number, startNs)
	i.needs++
	if !leased {
		i.late++
	}
	check := func() {
		if leased && !w.registered[g] {
			w.fatalf("at %d ns a message of %+v meets memory that is not registered", w.nowNs, g)
		}
	}
	check()
	i.using[number]++
	w.at(startNs+durationNs, func() {
		check()
		i.using[number]--
		u := predictor.Use{StartNs: startNs, EndNs: w.nowNs, Op: 1, Frames: [predictor.MaxFrames]uint64{number}}
		i.h.Complete(number, leased, u, w.nowNs)
	})
	return leased
}

var ample = Limits{Bytes: math.MaxUint64 / 2, PeerBytes: math.MaxUint64 / 2}
