package micro

import (
	"math"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay"
	"pinwheel/verbs"
)

const mib = 1 << 20

// Costs without a fixed part, so that what is to come out can be said in advance.
var options = Options{
	Sizes: []uint64{4 * mib, 5 * mib}, GbPerS: []float64{80}, Costs: []float64{0.005},
	Replay: replay.Options{Provider: "test", LookupNs: 1, Costs: verbs.Costs{
		Register: verbs.Cost{PerPageNs: 200}, Deregister: verbs.Cost{PerPageNs: 50},
	}},
}

func TestPoliciesPinAndWaitForWhatTheirsIs(t *testing.T) {
	testwait.Bound(t)
	rs, err := Compare(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	p := page{rs, 80}
	const registerNs, deregisterNs = 1024 * 200, 1024 * 50 // 4 MiB
	for _, j := range jobs {
		j.bytes = 4 * mib
		messages, _ := j.messages()
		all := 3.0 // buffers of rank 0 in all
		switch {
		case j.fresh:
			all = float64(messages)
		case j.benchmark == PingPong:
			all = 2
		}
		kept, demand := p.find(j, replay.LeavePinned, 0), p.find(j, replay.OnDemand, 0)
		if got := float64(kept.PeakPinnedBytes); got != all*4*mib {
			t.Errorf("%s, fresh %v: leave-pinned has a peak of %.0f bytes, want %.0f buffers", j.benchmark, j.fresh, got, all)
		}
		if demand.PeakPinnedBytes != 4*mib {
			t.Errorf("%s, fresh %v: on-demand has a peak of %d bytes, want one buffer", j.benchmark, j.fresh, demand.PeakPinnedBytes)
		}
		if j.benchmark == PingPong { // what a rank waits for is registered on the other side, too
			continue
		}
		want := registerNs + deregisterNs - registerNs*all/float64(messages)
		if got := demand.MessageNs - kept.MessageNs; math.Abs(got-want) > 2 {
			t.Errorf("fresh %v, %d rounds: a message takes %.0f ns more on demand, want %.0f", j.fresh, j.rounds, got, want)
		}
		chunked := p.find(j, replay.PipelinePinned, 0)
		want = registerNs * all / float64(messages) * 3 / 4
		if got := kept.MessageNs - chunked.MessageNs; math.Abs(got-want) > 2 {
			t.Errorf("fresh %v, %d rounds: a message takes %.0f ns less by chunks, want %.0f", j.fresh, j.rounds, got, want)
		}
	}
	reused := jobs[0]
	reused.bytes = 4 * mib
	if got := p.find(reused, replay.Paper, 0).PeakPinnedBytes; got != 4*mib {
		t.Errorf("policy paper has a peak of %d bytes, want one buffer of three", got)
	}
	for _, want := range []string{
		"| Fig. 9, buffers reused: peak saved of leave-pinned | 24.75 % | 66.67 % | 24.77 % |",
		"| Fig. 10, no reuse: leave-pinned's peak | 4.62 x | 30.00 x | 5.77 x |",
		"\n## Overlap, fresh buffers, 80 Gb/s: bandwidth in MB/s\n", "| pinwheel 0.5 % |\n",
	} {
		if text := Page(rs); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
