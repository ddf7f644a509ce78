package realtime

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/replaytest"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

func TestRealModeAgreesWithTheKernelToThePage(t *testing.T) {
	p, err := uring.Open(uring.Options{})
	verbstest.Available(t, err)
	defer p.Close()
	verbstest.NeedPinned(t, p, 8<<20) // 8 MiB: all buffers and the pool of policy bounce
	before := verbstest.Pinned(t)
	rs, err := Compare(t.Context(), Options{Scale: 0.5}, replaytest.Trace(t, replaytest.Loop()), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.VMSamples == 0 || r.VMDiffPages != 0 {
			t.Errorf("%s: %d samples, largest difference %d pages", r.Policy, r.VMSamples, r.VMDiffPages)
		}
		if r.Policy != replay.Bounce && r.PeakPinnedBytes == 0 {
			t.Errorf("%s pinned nothing", r.Policy)
		}
	}
	if after := verbstest.Pinned(t); after != before {
		t.Errorf("%d bytes pinned after all runs, %d before", after, before)
	}
}

func TestRealModeCountsWhatVirtualModeCounts(t *testing.T) {
	// Buffers end in the middle.
	ended := strings.Replace(replaytest.Loop(), "1: ", "1: recv 0 256K a; unmap 1M a; recv 0 256K a; ", 1)
	f := replaytest.Trace(t, strings.Replace(ended, "0: ", "0: send 1 256K a; unmap 1M a; send 1 256K a; ", 1))
	policies := []string{replay.LeavePinned, replay.OnDemand, replay.Bounce, replay.LRU}
	o := Options{Options: replay.Options{Policies: policies, BudgetBytes: 300 << 10}, Scale: 0.1, Pairs: 2, Ranks: []int{0, 1}}
	p := sim.New(sim.Options{})
	defer p.Close()
	real, err := Compare(t.Context(), o, f, p)
	if err != nil {
		t.Fatal(err)
	}
	virtual, err := replay.Compare(t.Context(), o.Options, f)
	if err != nil {
		t.Fatal(err)
	}
	if len(real) != 2*len(policies) {
		t.Fatalf("%d results for %d policies on two ranks", len(real), len(policies))
	}
	for i, r := range real {
		v := virtual[i/2*3+i%2] // of three: rank 0, rank 1, all
		if r.Policy != policies[i/2] || r.Policy != v.Policy || r.Rank != i%2 || r.Rank != v.Rank {
			t.Fatalf("result %d is of %s on rank %d and of %s on rank %d", i, r.Policy, r.Rank, v.Policy, v.Rank)
		}
		if r.Needs != v.Needs || r.FirstRegs != v.FirstRegs || r.LateRegs != v.LateRegs || r.PeakPinnedBytes != v.PeakPinnedBytes {
			t.Errorf("%s: real %+v peak %d\nvirtual %+v peak %d", r.Policy, r.Counts, r.PeakPinnedBytes, v.Counts, v.PeakPinnedBytes)
		}
		if r.Slowdown == nil || r.SlowdownMin > *r.Slowdown || *r.Slowdown > r.SlowdownMax || r.Pairs != 2 {
			t.Errorf("%s: slowdown %v of %g to %g in %d pairs", r.Policy, r.Slowdown, r.SlowdownMin, r.SlowdownMax, r.Pairs)
		}
	}
}

// compareUntil repeats a replay of the loop until the helper has had its turns: on
// a busy machine a run may be over before that.
func compareUntil(t *testing.T, what string, o Options, enough func([]replay.Result) bool) []replay.Result {
	t.Helper()
	p := sim.New(sim.Options{})
	defer p.Close()
	file := replaytest.Trace(t, replaytest.Loop())
	var rs []replay.Result
	testwait.Until(t, what, func() bool {
		var err error
		if rs, err = Compare(t.Context(), o, file, p); err != nil {
			t.Fatal(err)
		}
		return enough(rs)
	}, func() any { return rs })
	return rs
}

func TestHelperWorksInRealMode(t *testing.T) {
	// Policy paper deregisters a buffer at once if it knows nothing about it.
	o := Options{Options: replay.Options{Policies: []string{replay.Paper}}, Ranks: []int{0, 1}}
	rs := compareUntil(t, "the helper deregisters", o, func(rs []replay.Result) bool { return rs[0].HelperDeregs > 0 && rs[1].HelperDeregs > 0 })
	for rank, r := range rs {
		if r.Rank != rank || r.FirstRegs != 2 || r.HelperCPUNs == 0 {
			t.Errorf("rank %d: %+v", r.Rank, r.Counts)
		}
	}
}

func TestRealModeGradesPredictions(t *testing.T) {
	o := Options{Options: replay.Options{Policies: []string{replay.LeavePinned, replay.Pinwheel}}}
	rs := compareUntil(t, "half of the uses are predicted", o, func(rs []replay.Result) bool { return rs[1].Predictions >= 30 })
	if r := rs[0]; r.Predictions != 0 || r.Err5 != nil {
		t.Errorf("leave-pinned predicts: %+v", r.Counts)
	}
	// There are 30 uses of each of two buffers.
	if r := rs[1]; r.Predictions > 60 || r.Err05 == nil || r.Err5 == nil || *r.Err5 < *r.Err05 {
		t.Errorf("pinwheel: %d predictions, %v below 0.5 %%, %v below 5 %%", r.Predictions, r.Err05, r.Err5)
	}
}

// Each buffer is used twice, 20 ms apart, and late uses may cost nothing. Without trained it is kept after the first use.
// With those of a run in which each was used once it is released, and registered late.
func TestRealModeBeginsWithTrainedEntries(t *testing.T) {
	file := replaytest.Trace(t, strings.ReplaceAll(`
		0: send 1 256K a; send 1 256K b; CPU; send 1 256K a; send 1 256K b
		1: recv 0 256K a; recv 0 256K b; CPU; recv 0 256K a; recv 0 256K b`, "CPU", "cpu 20ms"))
	learned := map[int]*predictor.Trained{}
	var mu sync.Mutex
	o := Options{Options: replay.Options{Policies: []string{replay.Pinwheel}, Learned: func(rank int, l predictor.Trained) {
		mu.Lock()
		defer mu.Unlock()
		learned[rank] = &predictor.Trained{Buffers: l.Buffers}
	}, Cost: 1e-9}, Ranks: []int{1}}
	if _, err := replay.Compare(t.Context(), o.Options, file); err != nil {
		t.Fatal(err)
	}
	for i := range learned[1].Buffers {
		learned[1].Buffers[i].Uses = 1
	}
	p := sim.New(sim.Options{})
	defer p.Close()
	play := func() replay.Result {
		rs, err := Compare(t.Context(), o, file, p)
		if err != nil {
			t.Fatal(err)
		}
		return rs[0]
	}
	if r := play(); r.Profile || r.LateRegs != 0 {
		t.Errorf("without trained entries: %+v, %+v", r.Counts, r.RealRun)
	}
	o.Trained = func(rank int) *predictor.Trained { return learned[rank] }
	var r replay.Result
	testwait.Until(t, "a buffer is released after its only use that the trained entries know", func() bool {
		r = play()
		return r.LateRegs > 0
	}, func() any { return r.Counts })
	if !r.Profile {
		t.Error("the result does not say that it began with trained entries")
	}
}

func TestRealModeRefusesWhatItCantDo(t *testing.T) {
	f := replaytest.Trace(t, "0: cpu 1us")
	p := sim.New(sim.Options{})
	defer p.Close()
	for _, tc := range []struct {
		want string
		o    Options
	}{
		{"runs in virtual time only", Options{Options: replay.Options{Policies: []string{replay.Oracle}}}},
		{"rank 1 is not in this", Options{Ranks: []int{1}}},
		{"must be from 0.0001 to 10000", Options{Scale: -1}},
		{"must be from 0.0001 to 10000", Options{Scale: math.NaN()}},
		{"must be from 0.0001 to 10000", Options{Scale: 1e300}},
		{"from 1 to 1000", Options{Pairs: -1}},
	} {
		if _, err := Compare(t.Context(), tc.o, f, p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestCancelledRealRunLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := sim.New(sim.Options{})
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := Compare(ctx, Options{Options: replay.Options{Policies: []string{replay.Pinwheel}}, Scale: 1000}, replaytest.Trace(t, replaytest.Loop()), p)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	if u := p.Usage(); u.Regions != 0 {
		t.Errorf("%d regions are still registered", u.Regions)
	}
}

func TestRealModeNamesTheLimitThatLeavePinnedNeeds(t *testing.T) {
	p := sim.New(sim.Options{Limits: verbs.Limits{MaxPinnedBytes: 64 << 10, PinnedSource: "a small limit"}})
	defer p.Close()
	_, err := Compare(t.Context(), Options{Options: replay.Options{Policies: []string{replay.Pinwheel}}}, replaytest.Trace(t, replaytest.Loop()), p)
	if !errors.Is(err, verbs.ErrPinnedMemory) || !strings.Contains(err.Error(), "a small limit allows 64.0 KiB") {
		t.Fatalf("got %v", err)
	}
}

func TestBuffersThatOverlapInTheTraceOverlapInMemory(t *testing.T) {
	page := mem.Addr(mem.PageSize)
	at := func(first, pages mem.Addr) mem.Range {
		return mem.Range{Start: first * page, End: (first + pages) * page}
	}
	var traced mem.Set
	for _, r := range []mem.Range{at(100, 4), at(10, 2), at(102, 8), at(110, 1), at(12, 1)} {
		traced.Add(r)
	}
	a, err := newArena(&traced)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if len(a.maps) != 2 {
		t.Fatalf("%d mappings, want 2: pages 10 to 13 and 100 to 111", len(a.maps))
	}
	whole, part := a.at(at(100, 11)), a.at(mem.Range{Start: 103*page + 5, End: 104 * page})
	part[0] = 99
	if whole[3*page+5] != 99 {
		t.Error("a buffer inside another does not share its memory")
	}
	if r := mem.RangeOf(part); r.Start != mem.RangeOf(whole).Start+3*page+5 || r.Len() != uint64(page)-5 {
		t.Errorf("a part of %v lies at %v", mem.RangeOf(whole), r)
	}
}
