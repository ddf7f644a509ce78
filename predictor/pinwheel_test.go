package predictor

import (
	"math/rand/v2"
	"testing"

	"pinwheel/mem"
)

func TestAGateHoldsAPredictionUntilItsEventWasSeen(t *testing.T) {
	p := NewPinwheel(Options{Window: 0})
	prog := program{to: []Predictor{p}}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		if held := mustNextAfter(p, 1, round > 5); round > 5 && !held.Gated {
			t.Errorf("round %d: region 1 is wanted before region 2 was used", round)
		}
		prog.call(2, 20, 50*ms+rnd.Int64N(100*ms))
		if free := mustNextAfter(p, 1, round > 5); round > 5 && (free.Gated || free.NextNs > prog.nowNs+30*ms || free.NextNs < prog.nowNs+28*ms) {
			t.Errorf("round %d: %+v after region 2, 30 ms before the need", round, free)
		}
		prog.call(1, 10, 30*ms)
	}
}

func mustNextAfter(p Predictor, id mem.RegionID, must bool) Prediction {
	pr, ok := p.Next(id, 0)
	if must && !ok {
		panic("no prediction")
	}
	return pr
}

func TestAnotherEventInPlaceOfTheTriggerOpensTheGate(t *testing.T) {
	p := NewPinwheel(Options{Window: 0})
	prog := program{to: []Predictor{p}}
	for range 10 {
		prog.call(2, 20, 50*ms)
		prog.call(1, 10, 30*ms)
	}
	prog.call(3, 30, 50*ms)
	if pr := mustNext(t, p, 1, prog.nowNs); pr.Gated {
		t.Errorf("%+v waits for an event that did not come when it should have", pr)
	}
}

func TestAProgramWhoseGapsChangeIsNotLateForEver(t *testing.T) {
	for _, gapMs := range []int64{50, 200} { // from 100
		p := NewPinwheel(Options{Window: 2})
		prog := program{to: []Predictor{p}}
		for range 50 {
			prog.call(1, 10, 100*ms)
		}
		late := 0
		for range 50 {
			pr := mustNext(t, p, 1, prog.nowNs)
			if needed := prog.call(1, 10, gapMs*ms); pr.NextNs > needed {
				late++
			}
		}
		if late > 1 {
			t.Errorf("from 100 to %d ms: %d of 50 needs came before their prediction", gapMs, late)
		}
	}
}

// learned returns what a program of two buffers has learned: ten rounds of 100 and 30 ms.
func learned(t *testing.T) Trained {
	t.Helper()
	p := NewPinwheel(Options{Window: 2})
	rounds(&program{to: []Predictor{p}}, 10, 1)
	l := p.Trained()
	if len(l.Buffers) != 2 || len(l.Entries) < 4 {
		t.Fatalf("learned %+v", l)
	}
	return l
}

func rounds(prog *program, n int, speed int64) {
	for range n {
		prog.call(101, 10, 100*ms*speed)
		prog.call(102, 20, 30*ms*speed)
	}
}

func TestTrainedEntriesPredictFromTheFirstUse(t *testing.T) {
	l := learned(t)
	for _, speed := range []int64{1, 2} { // the other run may have been faster
		p := NewPinwheel(Options{Window: 2, Trained: &l})
		prog := program{to: []Predictor{p}}
		rounds(&prog, 3, speed)
		needed := prog.nowNs + 100*ms*speed
		if pr := mustNext(t, p, 101, prog.nowNs); pr.NextNs > needed || pr.NextNs < needed-10*ms*speed {
			t.Errorf("%d times slower: wanted %d ms before the need", speed, (needed-pr.NextNs)/ms)
		}
	}
	p := NewPinwheel(Options{Window: 0, Trained: &l})
	prog := program{to: []Predictor{p}}
	prog.call(7, 10, ms) // another RegionID, the same buffer
	if pr, ok := p.Next(7, prog.nowNs); !ok || pr.NextNs < prog.nowNs+20*ms {
		t.Errorf("%+v, %t after the first use", pr, ok)
	}
}

func TestTheLastUseOfABufferIsKnownFromTraining(t *testing.T) {
	l := learned(t)
	p := NewPinwheel(Options{Window: 2, Trained: &l})
	prog := program{to: []Predictor{p}}
	rounds(&prog, 10, 1)
	if pr := mustNext(t, p, 101, prog.nowNs); pr.NextNs != Never {
		t.Errorf("%+v after as many uses as in the other run", pr)
	}
	rounds(&prog, 2, 1) // this run is longer
	if pr := mustNext(t, p, 101, prog.nowNs); pr.NextNs == Never {
		t.Error("use counts are believed after they were wrong")
	}
}

func TestAContradictionEndsATrainedEntry(t *testing.T) {
	l := learned(t)
	p, fresh := NewPinwheel(Options{Window: 2, Trained: &l}), NewPinwheel(Options{Window: 2})
	prog := program{to: []Predictor{p, fresh}}
	rounds(&prog, 4, 20)
	a, b := mustNext(t, p, 101, prog.nowNs), mustNext(t, fresh, 101, prog.nowNs)
	if a.ExpectedNs != b.ExpectedNs {
		t.Errorf("a run that is 20 times slower expects %+v with trained entries, %+v without", a, b)
	}
}

func TestGapsOfATrainedEntryThatAreTooShortAreForgotten(t *testing.T) {
	l := learned(t)
	for i := range l.Entries { // the other run had jitter
		for _, gaps := range [][]int64{l.Entries[i].GapsNs, l.Entries[i].AfterNs} {
			if len(gaps) > 0 {
				gaps[0] = gaps[0] * 6 / 10
			}
		}
	}
	p := NewPinwheel(Options{Window: 2, Trained: &l})
	prog := program{to: []Predictor{p}}
	rounds(&prog, 7, 1)
	needed := prog.nowNs + 100*ms
	if pr := mustNext(t, p, 101, prog.nowNs); pr.NextNs > needed || pr.NextNs < needed-10*ms {
		t.Errorf("wanted %d ms before the need", (needed-pr.NextNs)/ms)
	}
}

// The transfers of an exchange end in another order each round. None of their buffers waits for an event that
// was already, be it one of the exchange or the reduction that follows it.
func TestTransfersThatOverlapMayEndInAnyOrder(t *testing.T) {
	for name, reduces := range map[string]bool{"exchange": false, "exchange and reduction": true} {
		t.Run(name, func(t *testing.T) {
			p := NewPinwheel(Options{Window: 0})
			rnd := rand.New(rand.NewPCG(1, 2))
			use := func(region mem.RegionID, startNs, endNs int64) {
				p.Observe(Use{Region: region, Range: mem.Range{Start: mem.Addr(region) << 20, End: mem.Addr(region)<<20 + 65536},
					StartNs: startNs, EndNs: endNs, Op: 1, Frames: [MaxFrames]uint64{uint64(region), 1}})
			}
			nowNs, closed := int64(0), 0
			for round := range 200 {
				startNs := nowNs + 80*ms
				for i, id := range rnd.Perm(4) {
					if pr, ok := p.Next(mem.RegionID(id+1), startNs); round >= 100 && (!ok || pr.Gated || pr.NextNs > startNs || pr.NextNs < startNs-20*ms) {
						t.Fatalf("round %d: region %d is needed now: %+v", round, id+1, pr)
					}
					nowNs = startNs + int64(5+i)*ms
					use(mem.RegionID(id+1), startNs, nowNs)
				}
				if pr, _ := p.Next(1, nowNs); pr.Gated {
					closed++
				}
				if reduces {
					nowNs += rnd.Int64N(100 * ms)
					use(5, nowNs, nowNs+ms)
					nowNs += ms
				}
			}
			if reduces != (closed > 100) {
				t.Errorf("after %d of 200 exchanges the gate was closed", closed)
			}
		})
	}
}

// Needs with another trigger say nothing about the gaps after this one.
func TestGapsAfterATriggerAreCheckedByItsOwn(t *testing.T) {
	const context, sig, other = 1, 7, 8
	s := newTraining(&Trained{Entries: []TrainedEntry{{
		Context: context, GapsNs: []int64{100 * ms, 100 * ms, 100 * ms},
		Steps: 1, Trigger: sig, Confidence: 2, AfterNs: []int64{100 * ms, 100 * ms, 60 * ms},
	}}})
	f := new(follower)
	s.train(context, f)
	s.correct(context, f, 100*ms)
	for i, trigger := range []uint64{other, sig, sig, sig} {
		if short := f.trigger.gaps.shortest(); short != 60*ms {
			t.Errorf("after %d needs the shortest gap is %d ms", i, short/ms)
		}
		f.gaps.add(100 * ms)
		f.learn(1, trigger, 100*ms)
	}
	if short := f.trigger.gaps.shortest(); short != 100*ms {
		t.Errorf("after three gaps of this run, the shortest is %d ms, of the entry", short/ms)
	}
}

func TestATrainedEntryOfOneGapIsUsedWithCaution(t *testing.T) {
	l := learned(t)
	wantedNs := func() int64 {
		p := NewPinwheel(Options{Window: 0, Trained: &l})
		prog := program{to: []Predictor{p}}
		prog.call(7, 10, ms)
		return mustNext(t, p, 7, prog.nowNs).NextNs - prog.nowNs
	}
	often := wantedNs()
	for i := range l.Entries {
		n := &l.Entries[i]
		n.GapsNs = n.GapsNs[:min(1, len(n.GapsNs))]
	}
	if once := wantedNs(); once <= 0 || once > often*6/10 {
		t.Errorf("wanted %d ms after the use by one gap, %d ms by many", once/ms, often/ms)
	}
}
