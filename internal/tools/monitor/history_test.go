package monitor

import (
	"math"
	"slices"
	"testing"
)

// seen is a look at one rank.
func seen(r Rank) Look { return Look{Jobs: []Job{{ID: "j", Ranks: []Rank{r}}}} }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestRatesAreThoseOfTheLastTenSeconds(t *testing.T) {
	var h History
	var r Rank
	for second := range 31 {
		r = Rank{PID: 1, RunSeconds: float64(100 + second), Hits: 1_000_000, LateUses: int64(second)}
		r.Cost.AgainNs, r.Cost.WaitNs = 1e6*int64(second), 1e6*int64(second)
		r.Helper.CPUNs = 5e9
		if second > 20 { // what was before counts no more
			r.Hits += 100 * int64(second-20)
			r.Helper.CPUNs += 2e7 * int64(second-20)
			r.StallNs = 1e6 * int64(second-20)
		}
		h.Add(seen(r))
		h.Add(seen(r)) // a look between two publications
	}
	got := h.Rates("j", &r)
	if !near(got.Hits, 100) || !near(got.Late, 1) || !near(got.HelperShare, 0.02) || !near(got.Stall, 0.001) || !near(got.Cost, 0.002) {
		t.Errorf("%+v", got)
	}
}

func TestRateOfASingleLookIsThatOfTheWholeRun(t *testing.T) {
	var h History
	r := Rank{PID: 1, RunSeconds: 50, Hits: 100}
	if got := h.Rates("j", &r); !near(got.Hits, 2) {
		t.Errorf("of a rank that was never seen: %+v", got)
	}
	h.Add(seen(r))
	if got := h.Rates("j", &r); !near(got.Hits, 2) {
		t.Errorf("of a rank that was seen once: %+v", got)
	}
	if got := h.Rates("j", &Rank{PID: 2}); got != (Rates{}) {
		t.Errorf("of a rank that has just started: %+v", got)
	}
}

func TestRankThatStartsAnewHasNoPast(t *testing.T) {
	var h History
	h.Add(seen(Rank{PID: 1, startNs: 5, RunSeconds: 100, Hits: 1e6, PinnedBytes: 7}))
	r := Rank{PID: 1, startNs: 200, RunSeconds: 10, Hits: 10}
	h.Add(seen(r))
	if got := h.Rates("j", &r); !near(got.Hits, 1) {
		t.Errorf("%+v", got)
	}
	if got := h.Trend("j", &r, 4); !slices.Equal(got, []int64{-1, -1, -1, 0}) {
		t.Errorf("trend %d", got)
	}
	if len(h.tracks) != 1 {
		t.Errorf("%d ranks are kept", len(h.tracks))
	}
}

func TestTrendIsThatOfTheLastMinute(t *testing.T) {
	var h History
	var r Rank
	for second := range 200 {
		r = Rank{PID: 1, RunSeconds: float64(second), PinnedBytes: int64(second)}
		h.Add(seen(r))
	}
	if got := h.Trend("j", &r, 6); !slices.Equal(got, []int64{149, 159, 169, 179, 189, 199}) {
		t.Errorf("%d", got)
	}
	if got := h.Trend("j", &r, Kept); got[0] != 140 || got[Kept-1] != 199 {
		t.Errorf("from %d to %d", got[0], got[Kept-1])
	}
	if n := len(h.tracks[identify("j", &r)]); n > Kept+2 {
		t.Errorf("%d looks are kept", n)
	}
}

func TestTrendShowsShortPeaksAndHoldsWhatIsNotRenewed(t *testing.T) {
	var h History
	var r Rank
	for _, s := range []struct{ second, pinned int64 }{{40, 1}, {41, 90}, {42, 2}, {99, 3}} {
		r = Rank{PID: 1, RunSeconds: float64(s.second), PinnedBytes: s.pinned}
		h.Add(seen(r))
	}
	if got := h.Trend("j", &r, 6); !slices.Equal(got, []int64{90, 2, 2, 2, 2, 3}) {
		t.Errorf("%d", got)
	}
}
