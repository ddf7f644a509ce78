package predictor

import (
	"testing"

	"pinwheel/mem"
)

func TestErrorIsTheDistanceFromTheNeedOverTheInterval(t *testing.T) {
	g := NewScored(NewLast())
	prog := program{to: []Predictor{g}}
	prog.call(1, 10, 99*ms) // nothing predicted
	prog.call(1, 10, 99*ms) // first interval: 100 ms
	prog.call(1, 10, 99*ms) // predicted exactly
	prog.call(1, 10, 95*ms) // 4 ms too late, of an interval of 96 ms: 4.2 %
	prog.call(1, 10, 49*ms) // 46 of 50 ms off
	got := g.Accuracy()
	if got.N != 3 || got.Below05 != 1 || got.Below5 != 2 {
		t.Errorf("%d predictions, %d below 0.5 %%, %d below 5 %%; want 3, 1, 2", got.N, got.Below05, got.Below5)
	}
	if got.Bins[0] != 1 {
		t.Errorf("the exact prediction is not in the first bin: %v", got.Bins)
	}
	for bin, n := range got.Bins[1:] {
		if n > 0 && (AccuracyBinUpper(bin+1) < 0.04 || AccuracyBinUpper(bin) > 0.92) {
			t.Errorf("%d errors of 4.2 %% and 92 %% in the bin up to %v", n, AccuracyBinUpper(bin+1))
		}
	}
}

func TestUsesAndAccuracyAreCountedByCallSite(t *testing.T) {
	g := NewScored(NewPinwheel(Options{Window: 2}))
	prog := program{to: []Predictor{g}}
	for range 10 {
		prog.call(1, 10, 20*ms)
		prog.call(1, 20, 40*ms)
		prog.call(2, 10, 10*ms)
	}
	sites := g.Sites(10)
	if len(sites) != 2 {
		t.Fatalf("%d call sites, want 2", len(sites))
	}
	var n int64
	for i, uses := range []int64{20, 10} { // the one with the most bytes first
		s := sites[i]
		if s.Uses != uses || s.Bytes != uint64(uses)*65536 {
			t.Errorf("%+v: want %d uses of 64 KiB", s, uses)
		}
		if s.N == 0 || s.Below05 != s.N {
			t.Errorf("site %d: %d of %d predictions of a steady loop are exact", s.Frames[0], s.Below05, s.N)
		}
		n += s.N
	}
	if n != g.Accuracy().N {
		t.Errorf("call sites add up to %d predictions, the total says %d", n, g.Accuracy().N)
	}
	if top := g.Sites(1); len(top) != 1 || top[0] != sites[0] {
		t.Errorf("the first of one is not the first of all")
	}
}

func TestCallSitesAreBoundedAndCountingGoesOn(t *testing.T) {
	g := NewScored(NewLast())
	use := func(frame, bytes uint64) {
		g.Observe(Use{Region: 1, Op: 1, Frames: [MaxFrames]uint64{frame}, Range: mem.Range{Start: 4096, End: 4096 + mem.Addr(bytes)}})
	}
	for i := range uint64(maxScoredSites + 10) {
		use(i+1, 1)
	}
	use(1, 1<<20) // one that is counted
	sites := g.Sites(maxScoredSites + 10)
	if len(sites) != maxScoredSites || sites[0].Uses != 2 || sites[0].Bytes != 1<<20+1 {
		t.Errorf("%d sites, want %d; the largest: %+v", len(sites), maxScoredSites, sites[0])
	}
}

func TestForgottenRegionIsNotScored(t *testing.T) {
	g := NewScored(NewLast())
	prog := program{to: []Predictor{g}}
	prog.call(1, 10, 99*ms)
	prog.call(1, 10, 99*ms)
	g.Forget(1)
	prog.call(1, 10, 99*ms)
	if n := g.Accuracy().N; n != 0 {
		t.Errorf("%d predictions of a region that was forgotten", n)
	}
}
