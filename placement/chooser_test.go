package placement

import (
	"math"
	"testing"

	"pinwheel/helper"
)

// A helper releases what its process has registered. The process must not lose its core over that.
func TestAProcessKeepsItsCoreWhileItsHelperReleasesMemory(t *testing.T) {
	var large, small *Chooser
	for i, c := range []**Chooser{&large, &small} {
		*c = NewChooser(Conservative, &Topology{}, []int{0, 1, 2}, Owner{PID: int32(i + 1)})
	}
	var claims []Claim
	busy := map[int]float64{0: 1, 1: 1}
	moves := 0
	for look := range 10 {
		bytes := int64(8 << 20) // until it has a helper
		if look > 0 {
			bytes = 0
		}
		claims = small.Choose(Look{Load: busy, CommCPU: 1, Bytes: 64 << 10}, claims)
		small.Placement(claims)
		claims = large.Choose(Look{Load: busy, CommCPU: 0, Bytes: bytes}, claims)
		if p, changed := large.Placement(claims); changed {
			moves++
			if p.CPU != 2 {
				t.Errorf("look %d: the large process is on %+v", look, p)
			}
		}
	}
	if moves != 1 {
		t.Errorf("%d moves in 10 looks, want the one to the idle core", moves)
	}
}

// The cores that no rank and no helper has are divided among the helpers of a node.
func TestHelpersDivideTheSpareCores(t *testing.T) {
	const ranks, cores = 2, 9
	var choosers [ranks]*Chooser
	allowed := make([]int, cores)
	for cpu := range allowed {
		allowed[cpu] = cpu
	}
	for i := range choosers {
		choosers[i] = NewChooser(Auto, &Topology{}, allowed, Owner{PID: int32(i + 1)})
	}
	load := map[int]float64{0: 1, 1: 1, 8: 0.5}
	var claims []Claim
	looks := func() (placed [ranks]helper.Placement) {
		for range 2 { // at the second look each knows of the others
			for i, c := range choosers {
				claims = c.Choose(Look{Load: load, CommCPU: i}, claims)
				placed[i], _ = c.Placement(claims)
			}
		}
		return placed
	}
	users := map[int]int{}
	for _, p := range looks() {
		if p.Spares != 2 {
			t.Errorf("%+v, want two of the four spare cores", p)
		}
		for _, cpu := range append(p.Spare[:p.Spares], p.CPU) {
			users[cpu]++
		}
	}
	if len(users) != 6 || users[0]+users[1]+users[8] > 0 {
		t.Errorf("users of processors: %v, want one on each of six idle ones", users)
	}
	for _, c := range choosers {
		c.Limit(allowed, 1.5)
	}
	if p := looks()[0]; p.Spares != 1 || p.Parked {
		t.Errorf("%+v under a quota that leaves 1.5 processors", p)
	}
	for _, c := range choosers {
		c.Limit(allowed, math.Inf(1))
	}
	for cpu := range allowed {
		load[cpu] = 1
	}
	for _, p := range looks() {
		if p.Spares != 0 {
			t.Errorf("%+v on a busy machine", p)
		}
	}
}

// Under a quota that is used up, a helper has no core of its own, whatever is idle; and it says so.
func TestAPlacementSaysThatAQuotaIsUsedUp(t *testing.T) {
	for policy, want := range map[IdlePolicy]helper.Placement{
		Conservative: {CPU: helper.AnyCPU, Parked: true, Helpers: 1, QuotaUsedUp: true},
		Auto:         {CPU: 0, Shared: true, Helpers: 1, QuotaUsedUp: true},
	} {
		c := NewChooser(policy, &Topology{}, []int{0, 1}, Owner{PID: 1})
		c.ShareWithRank()
		look := func(quotaLeft float64, looks int) (p helper.Placement) {
			c.Limit([]int{0, 1}, quotaLeft)
			for range looks {
				p, _ = c.Placement(c.Choose(Look{Load: map[int]float64{0: 1}, CommCPU: 0}, nil))
			}
			return p
		}
		if got := look(0.01, parkAfter); got != want {
			t.Errorf("%v: %+v, want %+v", policy, got, want)
		}
		if got, want := look(1, 1), (helper.Placement{CPU: 1, Helpers: 1}); got != want {
			t.Errorf("%v with time left: %+v, want %+v", policy, got, want)
		}
	}
}
