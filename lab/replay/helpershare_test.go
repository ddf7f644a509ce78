package replay

import (
	"reflect"
	"testing"

	"pinwheel/internal/testwait"
)

// withShare replays a NAS trace under pinwheel, whose helpers may cost a share of their ranks' time.
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

// What uses on demand cost beside leave-pinned, and the helper that decides which are, keeps to a share of the run, to
// what 2 s earn before, and to the use that exceeds it.
func TestUsesOnDemandKeepWithinTheirShareAndSaveMoreWithMore(t *testing.T) {
	base, err := Compare(t.Context(), Options{Policies: []string{LeavePinned}}, nasTrace(t, "ft.B.4"))
	if err != nil {
		t.Fatal(err)
	}
	saved := 0.0
	for _, share := range []float64{0.002, 0.005, 0.02, 0.05} {
		all, ranks := withShare(t, "ft.B.4", share, nil, nil)
		for i, r := range ranks {
			const useNs, advanceNs = 10_000_000, 2_000_000_000 // 64 MiB registered and deregistered
			most := int64(share*float64(r.RunNs+advanceNs)) + useNs
			if got := r.StallNs - base[i].StallNs + r.HelperCPUNs; got > most {
				t.Errorf("%g: rank %d took %d us, want at most %d", share, r.Rank, got/1000, most/1000)
			}
		}
		if *all.CapturedAvg < saved || all.HelperShare != share {
			t.Errorf("%g (%g): captured %.2f, with less %.2f", share, all.HelperShare, *all.CapturedAvg, saved)
		}
		saved = *all.CapturedAvg
	}
	if saved < 0.8 {
		t.Errorf("captured %.2f at 5 %%", saved)
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

// Under auto a rank whose helper has no idle core is served on demand; under conservative all stays registered.
func TestWithoutAnIdleCoreUsesAreServedOnDemand(t *testing.T) {
	nodes := nodesOf(4, 2)
	alone, _ := withShare(t, "ft.B.4", 0.05, nil, nil)
	full, _ := withShare(t, "ft.B.4", 0.05, &IdleCores{}, nodes)
	if alone.CapturedAvg == nil || full.HelpedNs == 0 || *full.CapturedAvg < 0.6**alone.CapturedAvg {
		t.Errorf("captured %v on full nodes, %v with the same share elsewhere", *full.CapturedAvg, *alone.CapturedAvg)
	}
	if none, _ := withShare(t, "ft.B.4", 0.05, &IdleCores{Policy: "conservative"}, nodes); none.HelperDeregs != 0 {
		t.Errorf("conservative: %d deregistrations", none.HelperDeregs)
	}
	none, _ := withShare(t, "ft.B.4", 0.01, &IdleCores{}, nodes)
	one, _ := withShare(t, "ft.B.4", 0.01, &IdleCores{PerNode: 1}, nodes)
	if one.HelperRegs == 0 || none.HelperRegs != 0 || *one.CapturedAvg <= *none.CapturedAvg {
		t.Errorf("captured %.2f with an idle core on a node and %.2f without; helpers registered %d and %d times",
			*one.CapturedAvg, *none.CapturedAvg, one.HelperRegs, none.HelperRegs)
	}
}
