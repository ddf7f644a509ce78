package filesbench

import (
	"strings"
	"testing"

	"pinwheel/internal/measure"
)

func TestClaimsCompareMediansOfWhatIsNotEncrypted(t *testing.T) {
	all := []Result{
		{What: File, Way: nginx, Bytes: 100, CPU: measure.Estimated([]float64{3, 1, 2}), Wall: measure.Estimated([]float64{3, 1, 2})},
		{What: File, Way: oursSendfile, Bytes: 100, CPU: measure.Estimated([]float64{1}), Wall: measure.Estimated([]float64{4})},
		{What: File, Way: oursTLS, Bytes: 100, CPU: measure.Estimated([]float64{1}), Wall: measure.Estimated([]float64{10})},
		{What: File, Way: oursShared, Bytes: 100, CPU: measure.Estimated([]float64{1}), Wall: measure.Estimated([]float64{2})},
		{What: Tree, Way: oursSendfile, Bytes: 100, CPU: measure.Estimated([]float64{1}), Wall: measure.Estimated([]float64{4})},
		{What: Tree, Way: rsync, Missing: "rsync is not installed"},
	}
	claims := Claims(all)
	for i, want := range []struct {
		times   float64
		missing string
		holds   bool
	}{{0.5, "", false}, {0, "rsync is not installed", false}, {2, "", true}} {
		if c := claims[i]; c.Times != want.times || c.Missing != want.missing || c.Holds() != want.holds {
			t.Errorf("%+v holds: %v, want %+v", c, c.Holds(), want)
		}
	}
	for _, c := range Claims(nil) {
		if c.Holds() {
			t.Errorf("%+v holds, and nothing was measured", c)
		}
	}
	var b strings.Builder
	if err := WriteTables(&b, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"does not hold", "not measured: rsync is not installed", "2.000  1.000 3.000"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, o := range []Options{{Bytes: -1}, {Files: -1}, {Files: 2_000_000}, {Rounds: -1}, {Rounds: 2000}} {
		if o.EnsureDefaults() == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
