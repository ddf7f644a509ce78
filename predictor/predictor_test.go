package predictor

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

const ms = int64(1_000_000)

// worthNs is for how long it is worth keeping a region in these tests.
const worthNs = 3e10

// program is a small loop of communication calls, the way tests write one.
type program struct {
	nowNs int64
	to    []Predictor
}

// call uses a region at a call site for 1 ms, after computing for computeNs,
// and returns when the region was needed.
func (p *program) call(region mem.RegionID, site uint64, computeNs int64) (neededNs int64) {
	neededNs = p.nowNs + computeNs
	p.nowNs = neededNs + ms
	r := mem.Range{Start: mem.Addr(region) << 20, End: mem.Addr(region)<<20 + 65536}
	for _, t := range p.to {
		t.Observe(Use{
			Region: region, Range: r, StartNs: neededNs, EndNs: p.nowNs, Op: 1, Frames: [MaxFrames]uint64{site, 1}, WorthNs: worthNs,
		})
	}
	return neededNs
}

func mustNext(t *testing.T, p Predictor, id mem.RegionID, nowNs int64) Prediction {
	t.Helper()
	pr, ok := p.Next(id, nowNs)
	if !ok {
		t.Fatalf("%T predicts nothing for region %d at %d ms", p, id, nowNs/ms)
	}
	return pr
}

func TestNobodyPredictsARegionSeenOnce(t *testing.T) {
	for _, p := range []Predictor{NewPaper(Options{Window: 2}), NewLast(), NewPinwheel(Options{Window: 2})} {
		prog := program{to: []Predictor{p}}
		prog.call(1, 10, 5*ms)
		if pr, ok := p.Next(1, prog.nowNs); ok {
			t.Errorf("%T predicts %+v after one use", p, pr)
		}
		if pr, ok := p.Next(2, prog.nowNs); ok {
			t.Errorf("%T predicts %+v for a region that it never saw", p, pr)
		}
	}
}

func TestEveryPredictorLearnsASteadyLoop(t *testing.T) {
	for _, p := range []Predictor{NewPaper(Options{Window: 2}), NewLast(), NewPinwheel(Options{Window: 2})} {
		prog := program{to: []Predictor{p}}
		var lastNs int64
		for range 20 {
			lastNs = prog.call(1, 10, 99*ms)
			prog.call(2, 20, 49*ms)
		}
		got := mustNext(t, p, 1, prog.nowNs)
		if want := lastNs + 150*ms; got.ExpectedNs != want {
			t.Errorf("%T expects region 1 at %d, it comes at %d", p, got.ExpectedNs, want)
		}
		if got.NextNs > got.ExpectedNs || got.NextNs < got.ExpectedNs-10*ms {
			t.Errorf("%T wants region 1 ready at %d for a need at %d", p, got.NextNs, got.ExpectedNs)
		}
	}
}

// Nested loops, Figure 4 of Li et al., CF'11: the call site alone does not tell the
// short gap inside the inner loop from the long one after it.
func TestContextTellsInnerFromOuterLoop(t *testing.T) {
	with, without := NewPaper(Options{Window: 2}), NewPaper(Options{Window: 0})
	prog := program{to: []Predictor{with, without}}
	var firstNs int64
	for range 6 {
		firstNs = prog.call(1, 10, 199*ms)
		prog.call(1, 10, 9*ms)
		prog.call(1, 10, 9*ms)
		prog.call(2, 20, 99*ms)
	}
	wantNs := firstNs + 320*ms
	if got := mustNext(t, with, 1, prog.nowNs).NextNs; got != wantNs {
		t.Errorf("with context: due at %d ms, needed at %d ms", got/ms, wantNs/ms)
	}
	if got, ok := without.Next(1, prog.nowNs); ok && got.NextNs == wantNs {
		t.Errorf("without context the prediction cannot be right, but is: %+v", got)
	}
}

// What the default predictor is for: the outer period jitters, the last
// stretch before the need does not, and so only the event next to the need
// makes a good prediction.
func TestPinwheelAnchorsAtTheEventBeforeTheNeed(t *testing.T) {
	pin, paper := NewPinwheel(Options{Window: 2}), NewPaper(Options{Window: 2})
	prog := program{to: []Predictor{pin, paper}}
	rnd := rand.New(rand.NewPCG(1, 2))
	var worstPin, worstPaper int64
	for i := range 60 {
		prog.call(2, 20, 100*ms+rnd.Int64N(100*ms)) // jitters
		pinNs, knows := pin.Next(1, prog.nowNs)
		paperNs, _ := paper.Next(1, prog.nowNs)
		neededNs := prog.call(1, 10, 20*ms) // always 20 ms later
		if i >= 20 && knows {
			worstPin = max(worstPin, neededNs-pinNs.NextNs)
			worstPaper = max(worstPaper, neededNs-paperNs.NextNs)
			if pinNs.NextNs > neededNs {
				t.Errorf("iteration %d: due %d us too late", i, (pinNs.NextNs-neededNs)/1000)
			}
		}
	}
	if worstPin > 5*ms || worstPaper < 20*ms {
		t.Errorf("up to %d us too early, paper %d us; want the one from the last event below 5 ms, the other far off", worstPin/1000, worstPaper/1000)
	}
}

// Two transfers of one exchange complete in any order, after any time, and the
// program computes from the later one on.
func TestPinwheelAnchorsBothTransfersAtTheLaterOne(t *testing.T) {
	p := NewPinwheel(Options{Window: 2})
	nowNs := int64(0)
	use := func(region mem.RegionID, startNs, endNs int64) {
		p.Observe(Use{Region: region, Range: mem.Range{Start: mem.Addr(region) << 20, End: mem.Addr(region)<<20 + 65536},
			StartNs: startNs, EndNs: endNs, Op: 1, Frames: [MaxFrames]uint64{10, 1}})
	}
	for round := range 200 {
		startNs := nowNs + 100*ms
		shorterNs, longerNs := startNs+10*ms, startNs+int64(20+37*round%60)*ms
		first := mem.RegionID(1 + round*7%3%2) // 1, 2, 1, 1, 2, 1, ...
		use(first, startNs, shorterNs)
		use(3-first, startNs+5*ms, longerNs)
		nowNs = longerNs
		if round < 100 {
			continue
		}
		for id := mem.RegionID(1); id <= 2; id++ {
			if got := mustNext(t, p, id, nowNs); got.NextNs < nowNs+85*ms || got.NextNs > nowNs+105*ms {
				t.Fatalf("round %d: region %d is wanted %d ms after the exchange, needed after 100 to 105", round, id, (got.NextNs-nowNs)/ms)
			}
		}
	}
}

func TestPinwheelKnowsHowLateANeedHasEverBeen(t *testing.T) {
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	for _, computeMs := range []int64{50, 90, 60, 70, 120, 60, 70, 80} {
		prog.call(1, 10, computeMs*ms)
	}
	if got := mustNext(t, p, 1, prog.nowNs).LatestNs; got != prog.nowNs+120*ms {
		t.Errorf("at the latest after %d ms, want 120", (got-prog.nowNs)/ms)
	}
}

func TestPinwheelIsMoreCautiousAfterItWasTooLate(t *testing.T) {
	steady, jittery := NewPinwheel(Options{}), NewPinwheel(Options{})
	rnd := rand.New(rand.NewPCG(3, 4))
	early := func(p Predictor, jitterNs int64) (share float64) {
		prog := program{to: []Predictor{p}}
		for range 200 {
			prog.call(1, 10, 100*ms-rnd.Int64N(jitterNs+1)*rnd.Int64N(2))
		}
		pr := mustNext(t, p, 1, prog.nowNs)
		return float64(pr.ExpectedNs-pr.NextNs) / float64(100*ms)
	}
	s, j := early(steady, 0), early(jittery, 20*ms)
	if s > 0.02 || j < 2*s {
		t.Errorf("margin %.3f of a steady gap, %.3f of a jittery one", s, j)
	}
}

func TestPinwheelHalvesAGapThroughCodeThatRanForTheFirstTime(t *testing.T) {
	p := NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p}}
	prog.call(1, 10, ms)
	prog.call(2, 20, 200*ms) // cold: first call ever
	prog.call(1, 10, 200*ms)
	pr := mustNext(t, p, 1, prog.nowNs)
	if gap := pr.NextNs - prog.nowNs; gap > 401*ms/2 {
		t.Errorf("a cold gap of 401 ms is trusted for %d ms", gap/ms)
	}
	if pr.Confidence != 0 {
		t.Errorf("confidence %v in a cold gap", pr.Confidence)
	}
}

func TestPinwheelTrustsNoGapThatBeganBeforeItManagedTheProgram(t *testing.T) {
	for _, early := range []bool{false, true} {
		p := NewPinwheel(Options{})
		p.Observe(Use{Region: 1, EndNs: ms, Early: early})
		p.Observe(Use{Region: 1, StartNs: 401 * ms, EndNs: 402 * ms, Early: early, WorthNs: worthNs})
		p.Observe(Use{Region: 1, StartNs: 802 * ms, EndNs: 803 * ms, WorthNs: worthNs})
		gap := mustNext(t, p, 1, 803*ms).NextNs - 803*ms
		if trusts := gap > 200*ms; trusts == early {
			t.Errorf("early %v: a gap of 400 ms is trusted for %d ms", early, gap/ms)
		}
	}
}

// Whatever comes, no predictor may name a time for a region it was not told
// of, panic, or contradict itself.
func TestPredictorsSurviveAnyProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.IntRange(0, MaxWindow).Draw(t, "window")
		all := []Predictor{NewPaper(Options{Window: window}), NewPaperStrict(Options{Window: window}), NewLast(), NewPinwheel(Options{Window: window})}
		known := map[mem.RegionID]bool{}
		var nowNs int64
		for range rapid.IntRange(1, 60).Draw(t, "uses") {
			id := mem.RegionID(rapid.IntRange(1, 5).Draw(t, "region"))
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				delete(known, id)
				for _, p := range all {
					p.Forget(id)
				}
				continue
			}
			startNs := nowNs + rapid.Int64Range(-2*ms, 50*ms).Draw(t, "gap") // uses may overlap
			nowNs = max(nowNs, startNs+rapid.Int64Range(0, 5*ms).Draw(t, "duration"))
			known[id] = true
			site := rapid.Uint64Range(1, 3).Draw(t, "site")
			for _, p := range all {
				p.Observe(Use{Region: id, StartNs: startNs, EndNs: nowNs, Frames: [MaxFrames]uint64{site}})
				for _, c := range p.Changed() {
					if !known[c] {
						t.Fatalf("%T changed region %d, which is not known", p, c)
					}
				}
			}
		}
		for id := mem.RegionID(1); id <= 6; id++ {
			for _, p := range all {
				pr, ok := p.Next(id, nowNs)
				if ok && !known[id] {
					t.Fatalf("%T predicts region %d, which is not known", p, id)
				}
				if again, ok2 := p.Next(id, nowNs); ok != ok2 || pr != again {
					t.Fatalf("%T: %+v, then %+v", p, pr, again)
				}
				if ok && (pr.Confidence < 0 || pr.Confidence > 1 || pr.NextNs > pr.ExpectedNs) {
					t.Fatalf("%T: %+v", p, pr)
				}
			}
		}
	})
}

func TestGapsKnowTheirEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g gaps
		var all []int64
		for _, ns := range rapid.SliceOfN(rapid.Int64Range(-2, 9), 1, 3*gapMemory).Draw(t, "gaps") {
			g.add(ns)
			all = append(all, max(ns, 0))
			recent := all[max(0, len(all)-gapMemory):]
			if g.shortest() != slices.Min(recent) || g.longest() != slices.Max(recent) {
				t.Fatalf("%v: low %d, high %d", recent, g.shortest(), g.longest())
			}
			sorted := slices.Sorted(slices.Values(recent))
			for i, ns := range sorted {
				if got := g.at(i); got != ns {
					t.Fatalf("%v: %d is at place %d, want %d", recent, got, i, ns)
				}
			}
			if got := g.latest(gapMemory); !slices.Equal(got, recent) {
				t.Fatalf("the latest are %v, want %v", got, recent)
			}
			if m := g.median(); m != sorted[(len(sorted)-1)/2] {
				t.Fatalf("%v: median %d", recent, m)
			}
		}
	})
}

// What a driver keeps with its regions changes no prediction, also after a region was forgotten and came again.
func TestKnownSparesOnlyTheSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, quick := NewScored(NewPinwheel(Options{Window: 2})), NewScored(NewPinwheel(Options{Window: 2}))
		known := map[mem.RegionID]*Known{}
		var nowNs int64
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			id := mem.RegionID(rapid.Uint64Range(1, 4).Draw(t, "region"))
			if rapid.IntRange(0, 19).Draw(t, "forget") == 0 {
				plain.Forget(id)
				quick.Forget(id)
				delete(known, id)
			} else {
				nowNs += rapid.SampledFrom([]int64{ms, 5 * ms, 80 * ms}).Draw(t, "gap")
				u := Use{Region: id, StartNs: nowNs, EndNs: nowNs + ms, Frames: [MaxFrames]uint64{uint64(id), 1}}
				plain.Observe(u)
				if known[id] == nil {
					known[id] = new(Known)
				}
				u.Known = known[id]
				quick.Observe(u)
			}
			for id := range mem.RegionID(5) {
				want, wantOK := plain.Next(id, nowNs)
				if got, ok := quick.Next(id, nowNs); got != want || ok != wantOK {
					t.Fatalf("region %d: %+v %t, want %+v %t", id, got, ok, want, wantOK)
				}
			}
			if got, want := quick.Accuracy(), plain.Accuracy(); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	for _, p := range []Predictor{NewPaper(Options{Window: 2}), NewLast(), NewPinwheel(Options{Window: 2})} {
		b.Run(name(p), func(b *testing.B) {
			prog := program{to: []Predictor{p}}
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				prog.call(mem.RegionID(1+i%16), i%64, ms)
			}
		})
	}
}

func name(p Predictor) string {
	switch p.(type) {
	case *Paper:
		return "paper"
	case *Last:
		return "last"
	}
	return "pinwheel"
}
