//go:build linux && cgo

package rdma_test

import (
	"testing"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/realtime"
	"pinwheel/trace"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

// TestVmPinIsAccountedForUnderEveryPolicy replays NAS traces in real time,
// speeded up, with the device registering: whenever nothing is being registered, VmPin
// must be what the policy believes to be pinned. Two policies do for a short test, which waits for what it emulates.
func TestVmPinIsAccountedForUnderEveryPolicy(t *testing.T) {
	policies := realtime.Policies()
	if testing.Short() {
		policies = []string{replay.Paper, replay.Pinwheel}
	}
	for _, c := range []struct {
		trace string
		scale float64
	}{
		{"ft.B.4", 0.1},  // few large buffers
		{"mg.C.4", 0.05}, // many, nested, used out of phase
	} {
		t.Run(c.trace, func(t *testing.T) {
			p := rdmatest.Open(t)
			f, err := trace.Open("../../results/traces/" + c.trace + ".pwt")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			before := verbstest.Pinned(t)
			o := realtime.Options{Options: replay.Options{Policies: policies}, Scale: c.scale}
			rs, err := realtime.Compare(t.Context(), o, f, p)
			if err != nil {
				t.Fatal(err)
			}
			if len(rs) != len(policies) {
				t.Errorf("%d results for %d policies", len(rs), len(policies))
			}
			for _, r := range rs {
				t.Logf("%-13s peak %11d bytes, avg %13.0f, first %4d, late %5d, by the helper %d and %d; %d samples of VmPin, "+
					"largest difference %d pages",
					r.Policy, r.PeakPinnedBytes, r.AvgPinnedBytes, r.FirstRegs, r.LateRegs, r.HelperRegs,
					r.HelperDeregs, r.VMSamples, r.VMDiffPages)
				if r.VMSamples == 0 || r.VMDiffPages != 0 {
					t.Errorf("%s: %d samples of VmPin, largest difference %d pages", r.Policy, r.VMSamples, r.VMDiffPages)
				}
			}
			if after := verbstest.Pinned(t); after != before {
				t.Errorf("%d bytes pinned after all runs, %d before", after, before)
			}
		})
	}
}
