package replay

import (
	"testing"

	"pinwheel/lab/replay/replaytest"
	"pinwheel/verbs"
)

// Policy pipeline-pinned waits for the first chunk, and for what the wire can't hide of the others. It keeps them all.
func TestPipelinePinnedRegistersWhileItSendsAndKeeps(t *testing.T) {
	const text = `
		0: send 1 4M a; cpu 1ms; send 1 4M a; cpu 1ms; send 1 1M a+1M
		1: recv 0 4M a; recv 0 4M a; recv 0 1M a`
	for _, c := range []struct {
		what      string
		perPageNs float64
		bytes     float64 // a ns
		stallNs   int64
	}{
		{"the wire is slower", 100, 10, 25_600},
		{"registration is slower", 1000, 10, 256_000 + 3*(256_000-104_857)},
	} {
		network := DefaultNetwork()
		network.BytesPerNs = c.bytes
		rs, err := Compare(t.Context(), Options{
			Policies: []string{PipelinePinned}, Network: network, LookupNs: 1, PipelineBytes: 1 << 20,
			Costs: verbs.Costs{Register: verbs.Cost{PerPageNs: c.perPageNs}},
		}, replaytest.Trace(t, text))
		if err != nil {
			t.Fatal(err)
		}
		r := rs[0]
		if want := c.stallNs + 3; r.StallNs != want || r.FirstRegs != 1 || r.LateRegs != 0 || r.PeakPinnedBytes != 4<<20 {
			t.Errorf("%s: stalled for %d ns, want %d; %d first, %d late, peak %d", c.what, r.StallNs, want, r.FirstRegs,
				r.LateRegs, r.PeakPinnedBytes)
		}
	}
}
