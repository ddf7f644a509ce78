package replay

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay/replaytest"
)

// onNodes replays a NAS trace under pinwheel on nodes with idle cores.
func onNodes(t *testing.T, name string, nodes [][]int, cores *IdleCores) (base, ours Result) {
	t.Helper()
	o := Options{Policies: []string{LeavePinned, Pinwheel}, Cores: cores, Nodes: nodes}
	rs, err := Compare(t.Context(), o, nasTrace(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.Rank == AllRanks && r.Node == nil {
			base, ours = ours, r
		}
	}
	return base, ours
}

func nodesOf(ranks, perNode int) (nodes [][]int) {
	for r := range ranks {
		if r%perNode == 0 {
			nodes = append(nodes, nil)
		}
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], r)
	}
	return nodes
}

func TestWithAsManyIdleCoresAsRanksHelpersDoAsOnTheirOwn(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	for _, policy := range []string{"conservative", "aggressive"} {
		_, alone := onNodes(t, "ft.C.16", nodesOf(16, 4), nil)
		_, shared := onNodes(t, "ft.C.16", nodesOf(16, 4), &IdleCores{PerNode: 4, Policy: policy})
		if d := math.Abs(shared.AvgPinnedBytes/alone.AvgPinnedBytes - 1); d > 0.001 {
			t.Errorf("%s: pinned on average %.0f bytes, %.0f without the node", policy, shared.AvgPinnedBytes, alone.AvgPinnedBytes)
		}
		if shared.LateRegs != alone.LateRegs || shared.HelpedNs == 0 {
			t.Errorf("%s: %d late, %d without the node; helped for %d ns", policy, shared.LateRegs, alone.LateRegs, shared.HelpedNs)
		}
	}
}

func TestWithoutAnIdleCoreEverythingStaysPinned(t *testing.T) {
	for _, cores := range []*IdleCores{{Policy: "aggressive"}, {PerNode: 2, Policy: "off"}} {
		base, ours := onNodes(t, "ft.B.4", nodesOf(4, 2), cores)
		if ours.AvgPinnedBytes != base.AvgPinnedBytes || ours.HelperDeregs != 0 || ours.HelpedNs != 0 {
			t.Errorf("%+v: pinned on average %.0f bytes, leave-pinned %.0f; helped for %d ns", cores, ours.AvgPinnedBytes, base.AvgPinnedBytes, ours.HelpedNs)
		}
	}
}

// Helpers that share a core wait for each other, and with long time slices they can save less.
func TestHelpersOfOneCoreDelayEachOther(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	nodes := [][]int{{0, 3}, {1, 2}} // rank 0 talks to 1, and 2 to 3
	aggressive := func(cores int, sliceNs int64) Result {
		_, r := onNodes(t, "cg.C.4", nodes, &IdleCores{PerNode: cores, Policy: "aggressive", SliceNs: sliceNs})
		return r
	}
	alone, shared, long := aggressive(2, 0), aggressive(1, 0), aggressive(1, 100_000_000)
	if shared.HelperWaitNs <= alone.HelperWaitNs {
		t.Errorf("helpers waited for %d ns on one core, for %d ns on two", shared.HelperWaitNs, alone.HelperWaitNs)
	}
	if !(alone.AvgPinnedBytes < shared.AvgPinnedBytes && shared.AvgPinnedBytes < long.AvgPinnedBytes) {
		t.Errorf("pinned on average: %.0f bytes with a core each, %.0f on one core, %.0f with slices of 100 ms; want them to grow",
			alone.AvgPinnedBytes, shared.AvgPinnedBytes, long.AvgPinnedBytes)
	}
}

// Conservative gives the only idle core of a node to the rank that has most registered.
func TestTheCoreMovesToTheRankWithMostRegistered(t *testing.T) {
	small := strings.Repeat("send 2 64K a; cpu 100ms; ", 100)
	large := "cpu 3100ms; " + strings.Repeat("send 3 8M b; cpu 100ms; ", 69)
	f := replaytest.Trace(t, "0: "+small+"\n1: "+large+
		"\n2: "+strings.Repeat("recv 0 64K a; ", 100)+"\n3: "+strings.Repeat("recv 1 8M b; ", 69))
	o := Options{Policies: []string{Pinwheel}, Nodes: [][]int{{0, 1}, {2, 3}}, Cores: &IdleCores{PerNode: 1, Policy: "conservative"}}
	rs, err := Compare(t.Context(), o, f)
	if err != nil {
		t.Fatal(err)
	}
	if rs[0].HelperMoves < 2 || rs[0].HelpedNs >= rs[0].RunNs {
		t.Errorf("rank 0: %d moves, helped for %d of %d ns; want it to lose its core", rs[0].HelperMoves, rs[0].HelpedNs, rs[0].RunNs)
	}
	if rs[1].HelperDeregs == 0 {
		t.Error("rank 1 never got a helper")
	}
}

func TestSharedCoresGiveTheSameBytesOnAnyNumberOfProcessors(t *testing.T) {
	f := nasTrace(t, "ft.C.16")
	var runs [2]string
	for i, parallel := range []int{1, 4} {
		o := Options{Parallel: parallel, Nodes: nodesOf(16, 4), Cores: &IdleCores{PerNode: 2, Policy: "aggressive"}}
		rs, err := Compare(t.Context(), o, f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(rs)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = string(b)
	}
	if runs[0] != runs[1] {
		t.Fatal("two runs differ")
	}
	for _, name := range []string{"idle_cores", "idle_policy", "helper_wait_ns", "helper_moves", "helped_ns"} {
		if !strings.Contains(runs[0], `"`+name+`":`) {
			t.Errorf("%s is missing", name)
		}
	}
}
