package predictor

import (
	"testing"

	"pinwheel/mem"
)

// step is one use of a made-up program: at a time, which call, of which region, from which call site.
type step struct {
	atMs   int64
	op     Op
	region mem.RegionID
	site   uint64
}

func observeSteps(steps []step, to ...Predictor) {
	for _, s := range steps {
		for _, p := range to {
			p.Observe(Use{Region: s.region, StartNs: s.atMs * ms, EndNs: s.atMs*ms + 1, Op: s.op, Frames: [MaxFrames]uint64{s.site}})
		}
	}
}

// Section 3.1: of the calls before, the communication type and the memory address belong to a signature; of this one the
// stack frames and the address. Each program uses region 1 at 0 and at 100 ms, after a use of something else. If the two
// uses have one signature, its period is 100 ms, and region 1 is due at 200 ms; if not, nothing is known of it.
func TestPaperContextIsTypeAndAddressOfTheCallsBefore(t *testing.T) {
	const send, recv = 1, 2
	first := []step{{-10, send, 2, 20}, {0, send, 1, 10}}
	for name, c := range map[string]struct {
		then []step
		same bool
	}{
		"all alike":                         {[]step{{90, send, 2, 20}, {100, send, 1, 10}}, true},
		"the call before from another site": {[]step{{90, send, 2, 21}, {100, send, 1, 10}}, true},
		"the call before of another type":   {[]step{{90, recv, 2, 20}, {100, send, 1, 10}}, false},
		"the call before of other memory":   {[]step{{90, send, 3, 20}, {100, send, 1, 10}}, false},
		"this call from another site":       {[]step{{90, send, 2, 20}, {100, send, 1, 11}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPaper(Options{Window: 1})
			observeSteps(append(first, c.then...), p)
			got, ok := p.Next(1, 101*ms)
			if ok != c.same || ok && got.NextNs != 200*ms {
				t.Errorf("due at %d ms, known %v; want 200 ms, known %v", got.NextNs/ms, ok, c.same)
			}
		})
	}
}

// A window of two tells a after b from b after a.
func TestPaperContextHasAnOrder(t *testing.T) {
	const send = 1
	p := NewPaper(Options{Window: 2})
	observeSteps([]step{
		{0, send, 2, 20}, {10, send, 3, 30}, {20, send, 1, 10},
		{30, send, 3, 30}, {40, send, 2, 20}, {50, send, 1, 10},
	}, p)
	if got, ok := p.Next(1, 51*ms); ok {
		t.Errorf("%+v, but neither context came twice", got)
	}
	observeSteps([]step{{60, send, 2, 20}, {70, send, 3, 30}, {120, send, 1, 10}}, p)
	if got := mustNext(t, p, 1, 121*ms); got.NextNs != 220*ms { // 120 + (120 - 20)
		t.Errorf("due at %d ms, want 220", got.NextNs/ms)
	}
}

// Sections 3.2 and 4.2, by hand. Region 1 is used at site 10 at 0 and 100 ms: period 100, deadline 200. The program takes
// another path then, and uses it at site 11 at 250 and 300 ms: period 50, deadline 350. At 301 ms the earliest deadline
// associated with the region is 200 ms, which has passed; the nearest future one is 350. Site 10 comes again at 420: its
// period stays 100, the shortest, and its deadline is 520; that of site 11 has passed then.
func TestPaperReadsOverdueDeadlinesInTwoWays(t *testing.T) {
	const send = 1
	lenient, strict := NewPaper(Options{}), NewPaperStrict(Options{})
	both := []Predictor{lenient, strict}
	observeSteps([]step{{0, send, 1, 10}, {100, send, 1, 10}}, both...)
	for _, p := range both {
		if got := mustNext(t, p, 1, 101*ms); got.NextNs != 200*ms || got.ExpectedNs != 200*ms {
			t.Errorf("%+v before any deadline has passed, want 200 ms", got)
		}
	}
	check := func(nowMs, lenientMs, strictMs int64) {
		t.Helper()
		for i, wantMs := range []int64{lenientMs, strictMs} {
			got := mustNext(t, both[i], 1, nowMs*ms)
			if got.NextNs != wantMs*ms || got.ExpectedNs != lenientMs*ms {
				t.Errorf("reading %d at %d ms: due at %d, expected at %d ms; want %d and %d",
					i, nowMs, got.NextNs/ms, got.ExpectedNs/ms, wantMs, lenientMs)
			}
		}
	}
	observeSteps([]step{{250, send, 1, 11}, {300, send, 1, 11}}, both...)
	check(301, 350, 200)
	observeSteps([]step{{420, send, 1, 10}}, both...)
	check(421, 520, 350)

	// With no deadline to come, nothing is known for the first reading.
	if got, ok := lenient.Next(1, 600*ms); ok {
		t.Errorf("%+v after every deadline", got)
	}
	if got := mustNext(t, strict, 1, 600*ms); got.NextNs != 350*ms {
		t.Errorf("due at %d ms, want 350", got.NextNs/ms)
	}
}
