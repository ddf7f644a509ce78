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
	for i, tolerance := range []struct{ peak, average float64 }{{0, 0.03}, {0.05, 0.20}} {
		d, r := &derived[i], &recorded[i]
		if d.Needs != r.Needs {
			t.Errorf("%s: %d needs, recorded %d", d.Policy, d.Needs, r.Needs)
		}
		if off := math.Abs(float64(d.PeakPinnedBytes)/float64(r.PeakPinnedBytes) - 1); off > tolerance.peak {
			t.Errorf("%s: pins %d bytes at the peak, recorded %d", d.Policy, d.PeakPinnedBytes, r.PeakPinnedBytes)
		}
		if off := math.Abs(d.AvgPinnedBytes/r.AvgPinnedBytes - 1); off > tolerance.average {
			t.Errorf("%s: pins %.0f bytes on average, recorded %.0f", d.Policy, d.AvgPinnedBytes, r.AvgPinnedBytes)
		}
	}
}
