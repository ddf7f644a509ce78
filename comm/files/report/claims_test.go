package report

import (
	"math"
	"testing"
)

func TestAClaimAboutNothingPanics(t *testing.T) {
	for what, f := range map[string]func(){
		"no size":   func() { worst(mib+1, mib+2, func(int64) float64 { return 1 }) },
		"no number": func() { worst(0, mib, func(int64) float64 { return math.NaN() }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a claim holds", what)
				}
			}()
			f()
		}()
	}
}
