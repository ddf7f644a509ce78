package lease

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/mem"
	"pinwheel/predictor"
)

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
