package predictor

import "testing"

func TestGradeIsTheDistanceFromTheNeedOverTheInterval(t *testing.T) {
	g := NewGraded(NewLast())
	prog := program{to: []Predictor{g}}
	prog.call(1, 10, 99*ms) // nothing predicted
	prog.call(1, 10, 99*ms) // first interval: 100 ms
	prog.call(1, 10, 99*ms) // predicted exactly
	prog.call(1, 10, 95*ms) // 4 ms too late, of an interval of 96 ms: 4.2 %
	prog.call(1, 10, 49*ms) // 46 of 50 ms off
	got := g.Grade()
	if got.N != 3 || got.Below05 != 1 || got.Below5 != 2 {
		t.Errorf("%d graded, %d below 0.5 %%, %d below 5 %%; want 3, 1, 2", got.N, got.Below05, got.Below5)
	}
	if got.Bins[0] != 1 {
		t.Errorf("the exact prediction is not in the first bin: %v", got.Bins)
	}
	for bin, n := range got.Bins[1:] {
		if n > 0 && (GradeBinUpper(bin+1) < 0.04 || GradeBinUpper(bin) > 0.92) {
			t.Errorf("%d errors of 4.2 %% and 92 %% in the bin up to %v", n, GradeBinUpper(bin+1))
		}
	}
}

func TestGradesAreKeptBySignature(t *testing.T) {
	g := NewGraded(NewPinwheel(Options{Window: 2}))
	prog := program{to: []Predictor{g}}
	for range 10 {
		prog.call(1, 10, 20*ms)
		prog.call(1, 20, 40*ms)
		prog.call(2, 10, 10*ms)
	}
	sites := g.Sites(10)
	if len(sites) != 3 {
		t.Fatalf("%d signatures, want 3: region 1 at two sites, region 2 at one", len(sites))
	}
	var n int64
	for _, s := range sites {
		if s.Uses != 10 || s.Bytes != 10*65536 {
			t.Errorf("%+v: want 10 uses of 64 KiB", s)
		}
		if s.N == 0 || s.Below05 != s.N {
			t.Errorf("region %d at site %d: %d of %d predictions of a steady loop are exact", s.Region, s.Frames[0], s.Below05, s.N)
		}
		n += s.N
	}
	if n != g.Grade().N {
		t.Errorf("signatures add up to %d graded predictions, the total says %d", n, g.Grade().N)
	}
	if top := g.Sites(1); len(top) != 1 || top[0] != sites[0] {
		t.Errorf("the first of one is not the first of all")
	}
}
