package scale

import (
	"math"
	"testing"

	"pinwheel/lab/replay"
)

// FT.C was recorded on 4 and on 16 ranks. The run that the rule derives from four pins what the
// recorded 16 pin, if late uses may cost as much as it takes: the derived run is shorter, and earns less.
func TestDerivedFTPinsWhatTheRecordedOnePins(t *testing.T) {
	o := replay.Options{Policies: []string{replay.LeavePinned, replay.Pinwheel}, Cost: 0.05}
	derived, err := Compare(t.Context(), loadBase(t, "scaling/ft.C.4"), Strong, 16, 1, o, Options{Layout: [2]int{2, 8}})
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := Compare(t.Context(), loadBase(t, "ft.C.16"), Copies, 16, 1, o, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, tolerance := range []float64{0.03, 0.20} {
		d, r := &derived[i], &recorded[i]
		if d.Needs != r.Needs {
			t.Errorf("%s: %d needs, recorded %d", d.Policy, d.Needs, r.Needs)
		}
		for what, of := range map[string][2]float64{
			"at the peak": {float64(d.PeakPinnedBytes), float64(r.PeakPinnedBytes)}, "on average": {d.AvgPinnedBytes, r.AvgPinnedBytes},
		} {
			if math.Abs(of[0]/of[1]-1) > tolerance {
				t.Errorf("%s: pins %.0f bytes %s, recorded %.0f", d.Policy, of[0], what, of[1])
			}
		}
	}
}
