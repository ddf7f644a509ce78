package helper

import "testing"

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
