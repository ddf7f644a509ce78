package scale

import (
	"encoding/json"
	"math"
	"testing"

	"pinwheel/lab/replay"
)

// Copies that don't communicate give the same result, so a few of them stand for all: on whole
// nodes, and on a last node that is not full.
func TestTilesStandForAllOnlyWhereThatIsExact(t *testing.T) {
	b := loadBase(t, "ft.B.4")
	o := replay.Options{
		Policies: []string{replay.LeavePinned, replay.Pinwheel},
		Cores:    &replay.IdleCores{PerNode: 2, Policy: "aggressive"},
	}
	const ranks, perNode = 40, 6 // three times 12 ranks on two nodes, and 4 on one
	got, err := Compare(t.Context(), b, Copies, ranks, perNode, o, Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Nodes = nodes(ranks, perNode)
	all, err := replay.CompareJob(t.Context(), o, Tiled(b, ranks/b.Ranks()))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Result{}
	for i := range all {
		r := &all[i]
		w := want[r.Policy]
		if w == nil {
			w = &Result{}
			want[r.Policy] = w
		}
		switch {
		case r.Node != nil:
			w.Nodes++
			w.NodePeakBytes = max(w.NodePeakBytes, r.PeakPinnedBytes)
			w.NodeAvgBytes += r.AvgPinnedBytes
		case r.Rank == replay.AllRanks:
			w.Result = *r
		}
	}
	for i := range got {
		g, w := &got[i], want[got[i].Policy]
		if g.SimulatedRanks != 16 {
			t.Errorf("%d ranks were simulated, want 12 for the full nodes and 4", g.SimulatedRanks)
		}
		if g.Nodes != w.Nodes || g.NodePeakBytes != w.NodePeakBytes || g.Counts != w.Counts || g.PeakPinnedBytes != w.PeakPinnedBytes || g.RunNs != w.RunNs ||
			*g.Sharing != *w.Sharing || g.TraceEvents != w.TraceEvents {
			t.Errorf("%s: %+v\nwant %+v", g.Policy, g, w)
		}
		if d := math.Abs(g.NodeAvgBytes*float64(g.Nodes)/w.NodeAvgBytes - 1); d > 1e-12 {
			t.Errorf("%s: pinned on average %.0f bytes a node, want %.0f", g.Policy, g.NodeAvgBytes, w.NodeAvgBytes/float64(w.Nodes))
		}
	}
}

func TestScalingGivesTheSameBytesOnAnyNumberOfProcessors(t *testing.T) {
	b := loadBase(t, "sp.D.4")
	var runs [2]string
	for i, parallel := range []int{1, 4} {
		o := replay.Options{Policies: []string{replay.Paper, replay.Pinwheel}, Parallel: parallel}
		rs, err := Compare(t.Context(), b, Strong, 36, 6, o, Options{Iterations: 4})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(rs)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = string(text)
	}
	if runs[0] != runs[1] {
		t.Fatal("two runs differ")
	}
}
