package report

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

func TestPeriodsAreGradedByTheNextUseOfTheSameSignature(t *testing.T) {
	g := &ownGrader{Predictor: predictor.NewLast(), periods: map[ownSignature]ownPeriod{}}
	// Two sites use one region in turn: 10 ns apart and 90 ns later. The first
	// intervals of every signature teach, and the last interval is 4 % longer.
	for i, at := range []int64{1000, 1010, 1100, 1110, 1200, 1210, 1300, 1310, 1404, 1414} {
		var frames [predictor.MaxFrames]uint64
		frames[0] = uint64(1 + i%2)
		g.Observe(predictor.Use{Region: mem.RegionID(7), StartNs: at, EndNs: at + 1, Frames: frames})
	}
	// Of site 1 the context (uses before it) is complete from 1100 on, of site 2
	// from 1110 on: each has two periods graded, the first of them exact.
	if want := (ownErrors{n: 4, below05: 2, below5: 4}); g.errors != want {
		t.Errorf("got %+v, want %+v", g.errors, want)
	}
}
