package predictor

import "testing"

func TestALateNeedHurriesWhatFollowsOtherContexts(t *testing.T) {
	const slow, fast = 200 * ms, 100 * ms // after two call sites in turn
	p := NewPinwheel(Options{Window: 0})
	prog := program{to: []Predictor{p}}
	wantedNs := func() int64 { return mustNext(t, p, 1, prog.nowNs).NextNs - prog.nowNs }
	for range 10 {
		prog.call(1, 10, slow)
		prog.call(1, 20, fast)
	}
	prog.call(1, 10, slow)
	usualNs := wantedNs()
	prog.call(1, 20, fast)

	prog.isLate = true
	prog.call(1, 10, slow/2)
	prog.isLate = false
	if ns := wantedNs(); ns > usualNs*6/10 || ns < usualNs*4/10 {
		t.Errorf("after a need after half the time, that in another context is wanted after %d ms, usually after %d", ns/ms, usualNs/ms)
	}
	prog.call(1, 20, fast/2)
	if ns, once := wantedNs(), int64((1-shareOfFew[0])*float64(slow/2)); ns > once || ns < once*9/10 {
		t.Errorf("after one gap of %d ms at the new pace, the next is expected after %d ms, want %d or a little less", slow/2/ms, ns/ms, once/ms)
	}
	prog.call(1, 10, slow/2)
	if ns := wantedNs(); ns > fast/2 || ns < fast/3 {
		t.Errorf("the other context expects %d ms after a gap of %d", ns/ms, fast/2/ms)
	}
}

func TestPaceIsOfAFewEventsAndOfWhatWasNotMetSince(t *testing.T) {
	for _, c := range []struct {
		scale, confidence float64
		learned, index    uint64
		want              float64
	}{
		{.5, .9, 99, 100, .5},
		{.5, .9, 99, 100 + paceEvents - 1, .5},
		{.5, .9, 99, 100 + paceEvents, 1},
		{.5, .9, 100, 100, 1},    // has been met since
		{.9, .9, 99, 100, 1},     // hardly sooner
		{.3, .9, 99, 100, 1},     // far too soon
		{.5, 2. / 3, 99, 100, 1}, // a prediction from two gaps
	} {
		var s pace
		s.late(c.scale, c.confidence, 100)
		if got := s.of(&follower{learned: c.learned}, c.index); got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
}
