package replay

import (
	"reflect"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/schedule"
)

// withShare replays a NAS trace under pinwheel, whose helpers may use a share of a core.
func withShare(t *testing.T, name string, share float64, cores *IdleCores, nodes [][]int) (all Result, ranks []Result) {
	t.Helper()
	o := Options{Policies: []string{Pinwheel}, HelperShare: share, Cores: cores, Nodes: nodes}
	rs, err := Compare(t.Context(), o, nasTrace(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		switch {
		case r.Node != nil:
		case r.Rank == AllRanks:
			all = r
		default:
			ranks = append(ranks, r)
		}
	}
	return all, ranks
}

// A run is shorter than the window of the budget, and nothing is saved up before it: so each helper stays within
// its share of the whole run, and one registration.
func TestHelpersKeepWithinTheirShareAndSaveMoreWithMore(t *testing.T) {
	saved := 0.0
	for _, share := range []float64{0.01, 0.02, 0.05, 0.1} {
		all, ranks := withShare(t, "ft.B.4", share, nil, nil)
		for _, r := range ranks {
			const registrationNs = 10_000_000 // of 64 MiB, and its deregistration
			if most := int64(share*float64(r.RunNs)) + registrationNs; r.HelperCPUNs > most {
				t.Errorf("%g: the helper of rank %d took %d us, want at most %d", share, r.Rank, r.HelperCPUNs/1000, most/1000)
			}
		}
		if *all.CapturedAvg < saved || all.HelperShare != share {
			t.Errorf("%g (%g): captured %.2f, with less %.2f", share, all.HelperShare, *all.CapturedAvg, saved)
		}
		if saved = *all.CapturedAvg; share < 0.1 && all.Unpaid == 0 {
			t.Errorf("%g: nothing was unpaid, but %.2f captured", share, saved)
		}
		if *all.Slowdown > 1+schedule.DefaultCost {
			t.Errorf("%g: slowdown %.4f", share, *all.Slowdown)
		}
	}
	if saved < 0.7 {
		t.Errorf("captured %.2f at 10 %%", saved)
	}
}

func TestShareOfAllOfACoreIsNoLimit(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	free, _ := withShare(t, "lu.B.4", 0, nil, nil)
	whole, _ := withShare(t, "lu.B.4", 1, nil, nil)
	whole.HelperShare = 0
	if !reflect.DeepEqual(free, whole) {
		t.Errorf("with 100 %%: %+v\nwithout a limit: %+v", whole, free)
	}
}

// Under auto a helper without an idle core shares that of its rank; under conservative there is none.
func TestWithoutAnIdleCoreHelpersShareThatOfTheirRank(t *testing.T) {
	nodes := nodesOf(4, 2)
	alone, _ := withShare(t, "ft.B.4", 0.05, nil, nil)
	full, _ := withShare(t, "ft.B.4", 0.05, &IdleCores{}, nodes)
	if alone.CapturedAvg == nil || full.HelpedNs == 0 || *full.CapturedAvg < 0.6**alone.CapturedAvg {
		t.Errorf("captured %v on full nodes, %v with the same share elsewhere", *full.CapturedAvg, *alone.CapturedAvg)
	}
	if none, _ := withShare(t, "ft.B.4", 0.05, &IdleCores{Policy: "conservative"}, nodes); none.HelperDeregs != 0 {
		t.Errorf("conservative: %d deregistrations", none.HelperDeregs)
	}
	one, ranks := withShare(t, "ft.B.4", 0.01, &IdleCores{PerNode: 1}, nodes)
	if one.HelpedNs == 0 || ranks[0].HelperCPUNs <= 2*ranks[1].HelperCPUNs && ranks[1].HelperCPUNs <= 2*ranks[0].HelperCPUNs {
		t.Errorf("one idle core on a node: its helpers took %d and %d us, one of them without a limit",
			ranks[0].HelperCPUNs/1000, ranks[1].HelperCPUNs/1000)
	}
}
