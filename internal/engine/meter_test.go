package engine

import (
	"testing"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/internal/report"
	"pinwheel/predictor"
	"pinwheel/regcache"
)

// stoppedClock stands still until a test moves it.
type stoppedClock struct{ ns int64 }

func (c *stoppedClock) nowNs() int64 { return c.ns }

func newStopped() (*meter, *stoppedClock) {
	c := &stoppedClock{ns: 5e9}
	return newMeter(c.nowNs), c
}

func reportOf(m *meter) (r report.Rank) {
	m.report(&r)
	return r
}

func TestAveragePinnedIsWeightedByTime(t *testing.T) {
	m, c := newStopped()
	c.ns += 750e6 // nothing is pinned
	m.registered(4096, m.nowNs())
	c.ns += 250e6
	if r := reportOf(m); r.AveragePinnedBytes != 1024 || r.Seconds != 1 {
		t.Errorf("4096 bytes for a quarter of %g s give a mean of %d", r.Seconds, r.AveragePinnedBytes)
	}
}

func TestPeakStaysWhenMemoryGoes(t *testing.T) {
	m, c := newStopped()
	m.registered(8192, m.nowNs())
	began := m.nowNs()
	c.ns += 1000
	m.registered(-8192, began)
	if r := reportOf(m); r.PeakPinnedBytes != 8192 || r.RegisterNs != 1000 {
		t.Errorf("8192 bytes, gone after a microsecond: peak %d, registering %d ns", r.PeakPinnedBytes, r.RegisterNs)
	}
}

func TestParkingIsTimed(t *testing.T) {
	m, c := newStopped()
	m.place(helper.Placement{CPU: 1})
	c.ns += 2e9
	m.place(helper.Placement{Parked: true})
	m.place(helper.Placement{Parked: true, Helpers: 1})
	c.ns += 1e9
	m.place(helper.Placement{CPU: 1})
	c.ns += 1e9
	if r := reportOf(m); r.Parks != 1 || r.ParkedNs != 1e9 || r.FirstParkNs != 2e9 {
		t.Errorf("%d parks, the first at %d ns, %d ns in all", r.Parks, r.FirstParkNs, r.ParkedNs)
	}
	if got := m.whereabouts("there", true, 0); got != "there, parked before (1.0 s)" {
		t.Errorf("whereabouts %q", got)
	}
	if got := m.whereabouts("there", true, 5e8); got != "there, before on that of its rank (0.5 s)" {
		t.Errorf("whereabouts %q", got)
	}
	m.place(helper.Placement{Shared: true})
	if got := m.whereabouts("there", true, 5e8); got != "parked: no idle core, so memory is registered on demand" {
		t.Errorf("whereabouts beside uses on demand %q", got)
	}
	if got := m.whereabouts("there", false, 5e8); got != "on the core of its rank" {
		t.Errorf("whereabouts of one that shares %q", got)
	}
	m.place(helper.Placement{Parked: true})
	if got := m.whereabouts("there", false, 0); got != "parked: no idle core (1.0 s)" {
		t.Errorf("whereabouts of a parked one %q", got)
	}
	if got := reportOf(m).QuotaUsedUpNs; got != 0 {
		t.Errorf("%d ns for want of a quota, without one", got)
	}
	m.place(helper.Placement{Parked: true, QuotaUsedUp: true})
	c.ns += 1e9
	if got := m.whereabouts("there", false, 0); got != "parked: the CPU quota is used up (2.0 s)" {
		t.Errorf("whereabouts of one that is parked because of a quota %q", got)
	}
	m.place(helper.Placement{Shared: true, QuotaUsedUp: true})
	c.ns += 1e9
	m.place(helper.Placement{CPU: 1})
	c.ns += 1e9
	if got := reportOf(m).QuotaUsedUpNs; got != 2e9 {
		t.Errorf("%d ns for want of a quota, want 2 s", got)
	}
}

func TestMissesAreCountedAtTheirSite(t *testing.T) {
	m, c := newStopped()
	c.ns += 1e9
	at := predictor.CallSite{Op: 3}
	m.missed(regcache.First, at, m.beganNs, m.beganNs+5e8)
	m.missed(regcache.Late, at, m.beganNs+9e8, m.beganNs+1e9)
	m.missed(regcache.Waited, at, m.beganNs+1e9, m.beganNs+1e9)
	if got := m.missedAt(at); got.late != 2 || got.stallNs != 6e8 {
		t.Errorf("%+v, want two late and 0.6 s", got)
	}
	h := reportOf(m).History
	var late, stalled float64
	for _, n := range h.Late.Values {
		late += n
	}
	for _, share := range h.Stalled.Values {
		stalled += share * float64(h.Stalled.WidthNs)
	}
	if late != 2 || stalled < 5.9e8 || stalled > 6.1e8 {
		t.Errorf("history has %g late and %g ns of stalls", late, stalled)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	m, c := newStopped()
	c.ns += 3600e9 // an hour
	for i := range int64(50_000) {
		now := m.beganNs + i*72e6
		m.missed(regcache.Late, predictor.CallSite{Frames: [predictor.MaxFrames]uint64{uint64(i)}}, now, now+1000)
	}
	m.registered(1<<30, m.nowNs())
	r := reportOf(m)
	for _, n := range []int{len(r.History.Pinned.Values), len(r.History.PinnedPeaks), len(r.History.Late.Values),
		len(r.History.Stalled.Values)} {
		if n == 0 || n > seriesBins {
			t.Errorf("%d values", n)
		}
	}
	if len(m.misses) > maxMissSites {
		t.Errorf("%d call sites", len(m.misses))
	}
}

func BenchmarkMiss(b *testing.B) {
	m := newMeter(clock.NowNs)
	var sites [8]predictor.CallSite
	for i := range sites {
		sites[i].Frames[0] = uint64(i)
	}
	i := 0
	for b.Loop() {
		now := m.clockNs()
		m.missed(regcache.Late, sites[i%len(sites)], now-1000, now)
		i++
	}
}
