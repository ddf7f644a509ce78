package replay

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

func TestPeriodicityNeedsAFullWindow(t *testing.T) {
	const ms, everyNs = 1_000_000, 10_000_000
	p := NewPeriodicity(12)
	var nowNs int64
	use := func(id mem.RegionID) {
		p.Observe(predictor.Use{Region: id, StartNs: nowNs, EndNs: nowNs + ms, Frames: [predictor.MaxFrames]uint64{10}})
		nowNs += everyNs
	}
	for i := range 12 {
		if _, ok := p.Next(1, nowNs); ok {
			t.Fatalf("predicts after %d uses with a window of 12", i)
		}
		use(mem.RegionID(1 + i%3))
	}
	if got, ok := p.Next(2, nowNs); !ok || got.NextNs != nowNs+everyNs {
		t.Errorf("predicts %+v, %t, want %d", got, ok, nowNs+everyNs)
	}
	use(7) // breaks the pattern
	if _, ok := p.Next(1, nowNs); ok {
		t.Error("predicts although the pattern broke")
	}
}
