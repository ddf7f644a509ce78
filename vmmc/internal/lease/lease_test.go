package lease

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
	"pinwheel/vmmc/internal/protocol"
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

// In a loop, a lease is there when a message needs it, and hardly ever else.
func TestLeaseIsRenewedAheadOfTheNextMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, periodNs := range []int64{10 * ms, 20 * ms, 100 * ms} {
		w := newWorld(t.Fatalf, 1, ample)
		i := w.importers[0]
		i.add(1, 1<<20)
		const rounds = 1000
		heldNs, sinceNs := int64(0), int64(0)
		for range rounds {
			i.message(1, 50*us)
			jitterNs := random.Int64N(periodNs/10) - periodNs/20
			for end := w.nowNs + periodNs + jitterNs; w.nowNs < end; {
				if w.run(min(end, w.nowNs+50*us)); w.registered[i.grant(1)] {
					heldNs += w.nowNs - sinceNs
				}
				sinceNs = w.nowNs
			}
		}
		late, held := float64(i.late)/rounds, float64(heldNs)/float64(w.nowNs)
		t.Logf("period %d ms: %.1f %% late, held for %.1f %% of the time", periodNs/ms, 100*late, 100*held)
		if late > 0.05 {
			t.Errorf("period %d ms: %d of %d messages waited", periodNs/ms, i.late, rounds)
		}
		if held > 0.5 {
			t.Errorf("period %d ms: held for %.0f %% of the time", periodNs/ms, 100*held)
		}
	}
}

// A lease that is used without a pause stays, also if its program is held up for less than a renewal takes.
func TestLeaseOfMessagesInARowStays(t *testing.T) {
	w := newWorld(t.Fatalf, 1, ample)
	i := w.importers[0]
	i.add(1, 1<<20)
	for i.h.Use(1, w.nowNs); !i.h.Leased(1); {
		w.run(w.nowNs + ms)
	}
	random := rand.New(rand.NewPCG(1, 2))
	nowNs := w.nowNs
	for n := range 5000 {
		startNs := nowNs
		if !i.h.Use(1, startNs) {
			t.Fatalf("message %d found no lease", n)
		}
		nowNs += 200 * us
		u := predictor.Use{StartNs: startNs, EndNs: nowNs, Op: 1, Frames: [predictor.MaxFrames]uint64{1}}
		i.h.Complete(1, true, u, nowNs)
		nowNs += 2*us + random.Int64N(2*us)
		if n%50 == 49 {
			nowNs += random.Int64N(200 * us)
		}
		if n%5 == 4 { // its driver has it learn once in a millisecond, in the middle of a pause
			i.h.Next(nowNs)
		}
	}
}

// On a fast network a renewal takes less than the helper of a rank would wake a worker for.
func TestRenewalsThatAreNeededTogetherRunTogether(t *testing.T) {
	w := newWorld(t.Fatalf, 1, ample)
	w.registerNs = 10 * us
	i := w.importers[0]
	for number := range uint64(renewals) {
		i.add(number+1, 1<<16)
	}
	const periodNs = 200 * ms
	var aheadNs int64
	for range 40 {
		needNs, noneNs := w.nowNs+periodNs, w.nowNs
		for number := range uint64(renewals) {
			i.message(number+1, 50*us)
		}
		for w.nowNs < needNs {
			w.run(min(needNs, w.nowNs+100*us))
			if len(w.registered) == 0 {
				noneNs = w.nowNs
			}
		}
		aheadNs = needNs - noneNs
	}
	if aheadNs > 30*ms {
		t.Errorf("the first lease is there %d ms before it is needed", aheadNs/ms)
	}
	if len(w.registered) != renewals {
		t.Errorf("%d leases, %d are needed", len(w.registered), renewals)
	}
}

// A renewal that is under way when its import is removed is none any more.
func TestRemovedImportsLeaveRoomForRenewals(t *testing.T) {
	w := newWorld(t.Fatalf, 1, ample)
	i := w.importers[0]
	renewedAhead := func(number uint64) bool {
		for range 20 {
			i.message(number, 50*us)
			for end := w.nowNs + 10*ms; w.nowNs < end; {
				if w.run(min(end, w.nowNs+50*us)); i.h.leases[mem.RegionID(number)].renewal != nil {
					return true
				}
			}
		}
		return false
	}
	for number := range uint64(2 * renewals) {
		i.add(number+1, 1<<16)
		if !renewedAhead(number + 1) {
			t.Fatalf("after %d removals nothing is renewed ahead", number)
		}
		i.h.Remove(number + 1)
	}
}

// Room that nobody uses goes to whoever needs it at once.
func TestIdleLeaseIsRecalledForAnother(t *testing.T) {
	for _, l := range []Limits{
		{Bytes: mem.PageSize, PeerBytes: mem.PageSize}, {Bytes: 10 * mem.PageSize, PeerBytes: mem.PageSize},
	} {
		w := newWorld(t.Fatalf, 1, l)
		i := w.importers[0]
		i.add(1, 1)
		i.add(2, 1)
		i.message(1, 10*us)
		w.run(ms)
		if !w.registered[i.grant(1)] {
			t.Fatal("what is not known to be needed again was yielded at once")
		}
		i.message(2, 10*us)
		w.run(2 * ms)
		if !i.message(2, 10*us) {
			t.Errorf("%+v: no lease a millisecond after it was asked for", l)
		}
	}
}

func TestIdleExportsPinNothing(t *testing.T) {
	w := newWorld(t.Fatalf, 3, ample)
	for _, i := range w.importers {
		for number := range uint64(50) {
			i.add(number+1, 1<<16)
			for range number % 4 {
				i.message(number+1, 10*us)
				w.run(w.nowNs + ms)
			}
		}
	}
	w.run(w.nowNs + 3000*ms)
	if len(w.registered) > 0 || w.lessor.RegisteredBytes() > 0 {
		t.Errorf("%d leases, %d bytes", len(w.registered), w.lessor.RegisteredBytes())
	}
}

// yields notes what a Holder yields. Whoever asks is to be granted its lease by the test.
type yields []uint64

func (*yields) Renew(uint64)          {}
func (y *yields) Yield(number uint64) { *y = append(*y, number) }

// Whatever the scheduler thinks of it, an unused lease ends in time, and one with a message on its way does not.
func TestUnusedLeasesAreYieldedInTheOrderOfTheirLastUses(t *testing.T) {
	var y yields
	h := NewHolder(&y, HolderOptions{IdleNs: 10 * ms, Costs: costs})
	for n := range uint64(3) {
		h.Add(n, 1)
		h.Use(n, 0)
		if err := h.Granted(n, int64(n)*ms); err != nil {
			t.Fatal(err)
		}
	}
	h.Use(0, 3*ms)
	h.Use(2, 4*ms)
	h.Complete(0, true, predictor.Use{StartNs: 3 * ms, EndNs: 5 * ms}, 5*ms)
	for _, step := range []struct {
		nowNs int64
		want  []uint64 // yielded so far
	}{{11*ms - 1, nil}, {11 * ms, []uint64{1}}, {15*ms - 1, []uint64{1}}, {15 * ms, []uint64{1, 0}}, {500 * ms, []uint64{1, 0}}} {
		if h.Next(step.nowNs); !slices.Equal(y, step.want) {
			t.Errorf("at %d ns %v are yielded, want %v", step.nowNs, y, step.want)
		}
	}
}

func TestExportThatIsTooLargeIsRefused(t *testing.T) {
	r := NewLessor(nil, Limits{Bytes: 1 << 20, PeerBytes: 1 << 16})
	if err := r.Check(1 << 16); err != nil {
		t.Error(err)
	}
	if err := r.Check(1<<16 + 1); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestWhatAnImporterHasNotItCanNotYield(t *testing.T) {
	w := newWorld(t.Fatalf, 1, ample)
	g := protocol.Grant{Link: 1, Number: 1}
	w.sizes[g] = 1
	if err := w.lessor.Yielded(g); !errors.Is(err, protocol.ErrProtocol) {
		t.Error(err)
	}
	if err := w.lessor.Renew(g, 1); err != nil {
		t.Error(err)
	}
	if err := w.lessor.Renew(g, 1); !errors.Is(err, protocol.ErrProtocol) {
		t.Error(err)
	}
	if err := w.importers[0].h.Granted(7, 0); err != nil {
		t.Errorf("an import that is gone: %v", err)
	}
	w.importers[0].h.Add(7, 1)
	if err := w.importers[0].h.Granted(7, 0); !errors.Is(err, protocol.ErrProtocol) {
		t.Error(err)
	}
}

// All ask at once, and a Recall is sent while its lease is being registered: whoever waits gets it, although the first
// goes on sending.
func TestRecallThatOvertakesItsGrantIsNotLost(t *testing.T) {
	w := newWorld(t.Fatalf, 1, Limits{Bytes: mem.PageSize, PeerBytes: mem.PageSize})
	i := w.importers[0]
	i.add(1, 1)
	i.add(2, 1)
	i.message(1, 10*us)
	i.message(2, 10*us)
	second := false
	for range 200 {
		i.message(1, 30*us)
		w.run(w.nowNs + 20*us)
		second = second || w.registered[i.grant(2)]
	}
	if !second {
		t.Error("the second import never got a lease")
	}
}

// What the exporter could not register is asked for again, though not at once, and the scheduler does not wait for it.
func TestRefusedLeaseIsAskedForAgain(t *testing.T) {
	w := newWorld(t.Fatalf, 1, ample)
	w.refuse = 1
	i := w.importers[0]
	i.add(1, 1)
	for range 100 {
		i.message(1, 10*us)
		w.run(w.nowNs + ms)
	}
	if w.registrations != 1 || w.lessor.RegisteredBytes() > 0 {
		t.Errorf("%d registrations in a tenth of a second, %d bytes", w.registrations, w.lessor.RegisteredBytes())
	}
	w.refuse = 0
	w.run(w.nowNs + 1000*ms)
	i.message(1, 10*us)
	w.run(w.nowNs + ms)
	if !i.message(1, 10*us) {
		t.Error("no lease")
	}
}

// Whatever importers do, no message meets memory that is not registered, no limit is exceeded, every renewal is
// granted in the end, and then nothing stays registered.
func TestLeasesAreSafeAndLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := mem.PageSize
		w := newWorld(t.Fatalf, 3, Limits{Bytes: 6 * page, PeerBytes: 4 * page})
		w.refuse = rapid.IntRange(0, 5).Draw(t, "refuse")
		last := map[protocol.Link]uint64{}
		removed := map[protocol.Grant]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := w.importers[rapid.IntRange(0, 2).Draw(t, "importer")]
			if last[i.link] == 0 || last[i.link] < 5 && rapid.IntRange(0, 3).Draw(t, "add") == 0 {
				last[i.link]++
				i.add(last[i.link], uint64(rapid.IntRange(1, int(4*page)).Draw(t, "bytes")))
			}
			number := uint64(rapid.IntRange(1, int(last[i.link])).Draw(t, "import"))
			g := i.grant(number)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if !removed[g] && i.using[number] == 0 {
					i.h.Remove(number)
					removed[g] = true
				}
			case 1, 2, 3, 4:
				w.run(w.nowNs + int64(rapid.IntRange(0, 2000).Draw(t, "us"))*us)
			default:
				if !removed[g] {
					i.message(number, int64(rapid.IntRange(0, 500).Draw(t, "us"))*us)
				}
			}
		}
		w.run(w.nowNs + 20_000*ms)
		for _, i := range w.importers {
			for id, l := range i.h.leases {
				if l.state != absent || l.using > 0 {
					t.Fatalf("lease %d of importer %d stays: %+v", id, i.link, l)
				}
			}
		}
		if len(w.registered) > 0 || w.lessor.RegisteredBytes() > 0 || len(w.lessor.queue) > 0 {
			t.Fatalf("left: %v, %d bytes", w.registered, w.lessor.RegisteredBytes())
		}
	})
}
