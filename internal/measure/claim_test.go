package measure

import "testing"

func TestClaimsHoldUpToTheirBounds(t *testing.T) {
	for _, c := range []struct {
		claim     Claim
		holds     bool
		want, got string
	}{
		{Claim{Relation: AtLeast, Bound: 2, Times: 2}, true, ">= 2.00", "2.00"},
		{Claim{Relation: AtLeast, Bound: 2, Times: 1.99}, false, ">= 2.00", "1.99"},
		{Claim{Relation: AtMost, Bound: 2, Times: 2}, true, "<= 2.00", "2.00"},
		{Claim{Relation: AtMost, Bound: 2, Times: 2.01}, false, "<= 2.00", "2.01"},
		{Claim{Relation: Below, Bound: 2, Times: 2}, false, "< 2.00", "2.00"},
		{Claim{Relation: AtMost, Times: 1, Said: "one of ten"}, false, "0", "one of ten"},
		{Claim{Relation: AtMost, Missing: NotMeasured}, false, "0", "not measured"},
		{Claim{Relation: AtLeast, Missing: "no rsync"}, false, ">= 0.00", "not measured: no rsync"},
	} {
		if c.claim.Holds() != c.holds || c.claim.Want() != c.want || c.claim.Got() != c.got {
			t.Errorf("%+v: %v, %q, %q", c.claim, c.claim.Holds(), c.claim.Want(), c.claim.Got())
		}
	}
}
