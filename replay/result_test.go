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
