package replay

import (
	"slices"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/schedule"
)

// clairvoyantly replays a trace with perfect predictions.
func clairvoyantly(t *testing.T, name string, workers int) Result {
	rs, err := Compare(t.Context(), Options{Policies: []string{Clairvoyant}, Workers: workers}, nasTrace(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return rs[len(rs)-1]
}

// TestPerfectPredictionsAreNotWasted uses cache, scheduler and helper to what
// is possible: who knows every need costs next to nothing, and pins little
// more than the bound. In FT.C.16 halves of an array and slices of them are
// used by turns: a slice that was never used before is served by its half.
func TestPerfectPredictionsAreNotWasted(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	for name, captured := range map[string]float64{"bt.C.4": 0.99, "ft.B.4": 0.97, "ft.C.16": 0.97, "is.C.4": 0.90, "lu.D.4": 0.99, "sp.D.4": 0.99} {
		t.Run(name, func(t *testing.T) {
			r := clairvoyantly(t, name, 1)
			if *r.Slowdown > 1+schedule.DefaultCost || *r.CapturedAvg < captured {
				t.Errorf("slowdown %.4f, captured %.3f; want at least %.3f", *r.Slowdown, *r.CapturedAvg, captured)
			}
		})
	}
}

// In IS six slices of 32 MiB are due at one instant: one worker must begin with the first long before.
func TestWorkersRegisterTogetherWhatIsDueTogether(t *testing.T) {
	for workers, captured := range map[int]float64{1: 0.89, 2: 0.94, 4: 0.96} {
		r := clairvoyantly(t, "is.C.4", workers)
		if *r.Slowdown > 1+schedule.DefaultCost || *r.CapturedAvg < captured {
			t.Errorf("%d workers: slowdown %.4f, captured %.3f; want at least %.3f", workers, *r.Slowdown, *r.CapturedAvg, captured)
		}
	}
}

// TestSleepsCostLittleOfTheSaving compares helpers that sleep with those that take each event at once.
func TestSleepsCostLittleOfTheSaving(t *testing.T) {
	for _, name := range []string{"bt.B.4", "cg.C.4", "ft.C.16", "is.C.4", "lu.B.4", "lu.D.4", "mg.C.4", "sp.B.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			captured := func(polls bool) float64 {
				rs, err := Compare(t.Context(), Options{Policies: []string{LeavePinned, Pinwheel, Oracle}, Polls: polls}, nasTrace(t, name))
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(rs, func(r Result) bool { return r.Policy == Pinwheel && r.Rank == AllRanks })
				return *rs[i].CapturedAvg
			}
			if sleeps, polls := captured(false), captured(true); sleeps < 0.97*polls {
				t.Errorf("captured %.3f, and %.3f by helpers that poll", sleeps, polls)
			}
		})
	}
}
