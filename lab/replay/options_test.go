package replay

import (
	"math"
	"strings"
	"testing"

	"pinwheel/lab/replay/replaytest"
	"pinwheel/verbs"
)

func TestOptionsOutOfBoundsAreRefusedWithTheRange(t *testing.T) {
	network := func(set func(*Network)) Options {
		n := DefaultNetwork()
		set(&n)
		return Options{Network: n}
	}
	for _, tc := range []struct {
		want string
		o    Options
	}{
		{"latency must be from 0 to 1s", network(func(n *Network) { n.LatencyNs = 3.6e18 })},
		{"latency must be from 0 to 1s", network(func(n *Network) { n.LatencyNs = math.NaN() })},
		{"overhead must be from 0 to 1s", network(func(n *Network) { n.OverheadNs = -1 })},
		{"gap must be from 0 to 1s", network(func(n *Network) { n.GapNs = math.Inf(1) })},
		{"bandwidth must be from 0.001 to 100000 Gb/s", network(func(n *Network) { n.BytesPerNs = math.NaN() })},
		{"bandwidth must be from 0.001 to 100000 Gb/s", network(func(n *Network) { n.BytesPerNs = 1e-300 })},
		{"bandwidth of a copy", network(func(n *Network) { n.CopyBytesPerNs = 0 })},
		{"eager must be at least 1 byte", network(func(n *Network) { n.EagerBytes = 0 })},
		{"eager must be at least 1 byte", network(func(n *Network) { n.EagerBytes = math.MaxUint64 })},
		{"unknown timeline", Options{Timeline: "wall"}},
	} {
		if err := tc.o.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	if err := (Options{}).Check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestCostsBeyondAnyTimeEndTheSimulationWithAnError(t *testing.T) {
	for _, cost := range []float64{4e18, 1e300} {
		o := Options{Policies: []string{OnDemand}, Costs: verbs.Costs{Register: verbs.Cost{FixedNs: cost}, Deregister: verbs.Cost{FixedNs: cost}}}
		_, err := Compare(t.Context(), o, replaytest.Trace(t, replaytest.Loop()))
		if err == nil || !strings.Contains(err.Error(), "146 years") {
			t.Errorf("cost of %g ns: %v", cost, err)
		}
	}
}
