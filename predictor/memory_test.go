package predictor

import (
	"testing"

	"pinwheel/mem"
)

func TestPinwheelForgetsWhatItIsToldTo(t *testing.T) {
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	for range 5 {
		prog.call(1, 10, 10*ms)
		prog.call(2, 20, 10*ms)
	}
	p.Forget(1)
	if pr, ok := p.Next(1, prog.nowNs); ok {
		t.Errorf("a forgotten region is predicted: %+v", pr)
	}
	prog.call(2, 20, 10*ms) // preceded region 1 before
	if pr, ok := p.Next(1, prog.nowNs); ok {
		t.Errorf("an event brought a forgotten region back: %+v", pr)
	}
}

func TestPinwheelBoundsItsMemory(t *testing.T) {
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	for i := range uint64(6 * leastGeneration) {
		prog.call(1, i, ms)
	}
	if n := len(p.contexts.present) + len(p.contexts.old); n > 2*leastGeneration {
		t.Errorf("%d contexts are kept, at most %d should be", n, 2*leastGeneration)
	}
}

// As many regions as a cache knows at the most must not take the memory that they are to save.
func TestManyRegionsDoNotLiftTheBoundOnMemory(t *testing.T) {
	const regions = 1 << 16
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	for i := range uint64(regions) {
		prog.call(mem.RegionID(i+1), i, ms)
		if n := max(len(p.contexts.present), len(p.contexts.old)); n > mostGeneration {
			t.Fatalf("a generation of %d contexts, at most %d should be", n, mostGeneration)
		}
	}
}

func TestManyRegionsInTurnAreRemembered(t *testing.T) {
	const regions = 10_000
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	id := 0
	next := func() mem.RegionID {
		r := mem.RegionID(id + 1)
		prog.call(r, uint64(r), ms)
		id = (id + 1) % regions
		return r
	}
	for range 4 * regions {
		next()
	}
	for range regions {
		if r := next(); p.regions[r].prediction.Confidence == 0 {
			t.Fatalf("the prediction of region %d does not rest on its own context: %+v", r, p.regions[r].prediction)
		}
	}
	if n := testing.AllocsPerRun(regions, func() { next() }); n > 0 {
		t.Errorf("%v allocations per use", n)
	}
}
