package replay

import (
	"slices"
	"strings"
	"testing"

	"pinwheel/lab/replay/replaytest"
)

// A program that sends from a buffer, frees it and goes on with another one.
const freed = `0: send 1 64K a; cpu 1ms; unmap 64K a; send 1 64K b; cpu 1ms; barrier
1: recv 0 64K a; recv 0 64K b; barrier`

func TestABufferThatEndsIsPinnedNoLonger(t *testing.T) {
	compare := func(script string) *Result {
		t.Helper()
		rs, err := Compare(t.Context(), Options{Policies: []string{LeavePinned}, Costs: roundNumbers().Costs}, replaytest.Trace(t, script))
		if err != nil {
			t.Fatal(err)
		}
		return &rs[0]
	}
	ended, kept := compare(freed), compare(strings.ReplaceAll(freed, "unmap 64K a; ", ""))
	if kept.PeakPinnedBytes != 128<<10 || ended.PeakPinnedBytes != 64<<10 {
		t.Errorf("at most %d bytes are pinned if a buffer ends before the next one begins, and %d if it stays",
			ended.PeakPinnedBytes, kept.PeakPinnedBytes)
	}
	// The lookup that finds out deregisters, which takes 2 us.
	if d := ended.StallNs - kept.StallNs; d != 2000 {
		t.Errorf("the end of a buffer held its rank up for %d ns", d)
	}
}

// Live a cache knows no more of a buffer whose mapping changed: what comes there then is another one.
func TestABufferAtTheAddressOfAnotherThatEndedIsNew(t *testing.T) {
	for _, policy := range []string{LeavePinned, Pinwheel, Pipeline} {
		for script, firsts := range map[string]int64{
			"send 1 64K a; unmap 64K a; send 1 64K a":                2,
			"send 1 64K a; unmap 4K a+60K; send 1 64K a":             2,
			"send 1 64K a; unmap 4K a+64K; send 1 64K a":             1,
			"isend 1 64K a req=1; unmap 64K a; send 1 64K a; wait 1": 2,
		} {
			f := replaytest.Trace(t, "0: "+script+"\n1: recv 0 64K b; recv 0 64K b")
			rs, err := Compare(t.Context(), Options{Policies: []string{policy}, PipelineBytes: 64 << 10}, f)
			if err != nil {
				t.Fatal(err)
			}
			if r := rs[0]; r.FirstRegs != firsts {
				t.Errorf("%s, %q: %d first registrations, want %d", policy, script, r.FirstRegs, firsts)
			}
		}
	}
}

// Events of a replay in real time have it at its place.
func TestTheEndOfABufferIsAnEvent(t *testing.T) {
	o := Options{}
	o.EnsureDefaults()
	next := Events(t.Context(), &o, replaytest.Trace(t, freed), 0)
	var kinds []EventKind
	for {
		events, err := next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if kinds = append(kinds, e.Kind); e.Kind == Unmapped && e.Range.Len() != 64<<10 {
				t.Errorf("%v ended", e.Range)
			}
		}
		if kinds[len(kinds)-1] == RankEnds {
			break
		}
	}
	if want := []EventKind{UseBegins, UseEnds, Unmapped, UseBegins, UseEnds, RankEnds}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

// Until changes of mappings are noticed, nothing is kept, and the helper has nothing to do. The baseline keeps everything.
func TestNothingIsKeptBeforeChangesAreNoticed(t *testing.T) {
	f := replaytest.Trace(t, "0: send 1 64K a; cpu 1ms; send 1 64K a; cpu 1ms; send 1 64K b; cpu 8ms; send 1 64K a; cpu 1ms; barrier\n"+
		"1: recv 0 64K a; recv 0 64K a; recv 0 64K a; recv 0 64K a; barrier")
	rs, err := Compare(t.Context(), Options{Policies: []string{LeavePinned, Pinwheel}, WatchNs: 5_000_000}, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		first, late, peak := int64(2), int64(0), int64(128<<10)
		if r.Policy == Pinwheel { // a is a first use twice, and late in between
			first, late, peak = 3, 1, 64<<10
		}
		if r.Rank == 0 && (r.FirstRegs != first || r.LateRegs != late || r.PeakPinnedBytes != peak) {
			t.Errorf("%s: %d first, %d late, at most %d bytes; want %d, %d, %d", r.Policy, r.FirstRegs, r.LateRegs,
				r.PeakPinnedBytes, first, late, peak)
		}
	}
}
