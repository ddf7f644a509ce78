package predictor

import (
	"math/rand/v2"
	"testing"

	"pinwheel/mem"
)

// recording keeps what it observes.
type recording struct {
	Last
	uses []Use
}

func (r *recording) Observe(u Use) {
	u.Bytes = int64(u.Range.Len())
	r.uses = append(r.uses, u)
}

func TestHindsightKnowsTheSpreadOfAContextButNotTheNextTime(t *testing.T) {
	const rounds = 1000
	play := func(to Predictor, check func(region mem.RegionID, round int, needNs int64)) {
		prog := program{to: []Predictor{to}}
		rnd := rand.New(rand.NewPCG(1, 2))
		for round := range rounds {
			call := func(region mem.RegionID, computeNs int64) {
				check(region, round, prog.nowNs+computeNs)
				prog.call(region, uint64(10*region), computeNs)
			}
			before := func(latestNs int64, spread float64) int64 { return max(latestNs-int64(spread*rnd.ExpFloat64()), 0) }
			call(2, before(150*ms, 2e7))
			call(1, before(40*ms, 1e6)) // 2 announces it
		}
	}
	var log recording
	play(&log, func(mem.RegionID, int, int64) {})
	for _, first := range []bool{false, true} {
		h := NewHindsight(Options{Window: 2}, log.uses, first)
		late, earlyNs := 0, int64(0)
		play(h, func(region mem.RegionID, round int, needNs int64) {
			p, ok := h.Next(region, 0)
			if known := round > 1 || round > 0 && !first; ok != known {
				t.Fatalf("first %v, round %d: predicted %v", first, round, ok)
			}
			if !ok {
				return
			}
			if p.Gated {
				t.Fatalf("round %d: %+v after the event that announces the need", round, p)
			}
			if p.NextNs > needNs {
				late++
			}
			if region == 1 { // the times of the other one are spread more
				earlyNs += max(needNs-p.NextNs, 0)
			}
		})
		if late == 0 || float64(late) > 4*hindsightLate*2*rounds || earlyNs > 8*rounds*ms {
			t.Errorf("first %v: %d of %d late, %d ns early on average", first, late, rounds, earlyNs/rounds)
		}
		if p, ok := h.Next(1, 0); first == (ok && p.NextNs == Never) {
			t.Errorf("first %v: after the last use %+v", first, p)
		}
	}
}
