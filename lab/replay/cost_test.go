package replay

import (
	"slices"
	"testing"
)

// Policy pinwheel makes no trace slower than it may, whatever that is, and a larger budget saves more.
func TestPinwheelKeepsWithinItsCost(t *testing.T) {
	const mostOver = 1.1
	for _, name := range []string{"bt.C.4", "ft.B.4", "ft.C.16", "is.C.4", "mg.C.4", "sp.D.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var least float64
			for _, cost := range []float64{.0005, .001, .005, .01} {
				rs, err := Compare(t.Context(), Options{Policies: []string{Pinwheel}, Cost: cost}, nasTrace(t, name))
				if err != nil {
					t.Fatal(err)
				}
				all := rs[slices.IndexFunc(rs, func(r Result) bool { return r.Rank == AllRanks })]
				if *all.Slowdown > 1+mostOver*cost {
					t.Errorf("with %.2f %% it is %.3f %% slower", 100*cost, 100*(*all.Slowdown-1))
				}
				if *all.CapturedAvg < least-.005 {
					t.Errorf("captured %.3f with %.2f %%, and %.3f with less", *all.CapturedAvg, 100*cost, least)
				}
				least = *all.CapturedAvg
			}
		})
	}
}
