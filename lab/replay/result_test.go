package replay

import "testing"

func TestWaitForARegistrationUnderWayIsLate(t *testing.T) {
	c := Counts{Needs: 12, FirstRegs: 2, LateRegs: 1, LateWaits: 3}
	if c.LateUses() != 4 || c.LateShare() != 0.4 {
		t.Errorf("%d late uses, a share of %g", c.LateUses(), c.LateShare())
	}
	if none := (Counts{Needs: 2, FirstRegs: 2}); none.LateShare() != 0 {
		t.Errorf("of first uses alone, %g are late", none.LateShare())
	}
}

// What late uses and uses on demand have cost is part of what the communication path was stalled, nearly: on demand, a use
// of more of a buffer is no first one.
func TestCostIsPartOfTheStall(t *testing.T) {
	for _, share := range []float64{0, .01} {
		o := Options{Policies: []string{LeavePinned, Pinwheel}, HelperShare: share}
		rs, err := Compare(t.Context(), o, nasTrace(t, "bt.C.4"))
		if err != nil {
			t.Fatal(err)
		}
		r, base := &rs[len(rs)-1], &rs[len(rs)/2-1]
		spent, most := r.AgainNs+r.WaitNs+r.DemandNs, r.StallNs-base.StallNs+r.HelperCPUNs
		if r.LateRegs == 0 || spent <= 0 || spent > most+most/100 || r.PriceNs <= 0 {
			t.Errorf("share %g: %d ns of %d were spent, at a price of %g", share, spent, most, r.PriceNs)
		}
		onDemand := share > 0
		if onDemand != (r.DemandNs > 0) || onDemand == (r.AgainNs > 0) || onDemand == (r.WaitNs > 0) {
			t.Errorf("share %g: %+v", share, r.Counts)
		}
	}
}
