package calibration_test

import (
	"slices"
	"strings"
	"testing"

	"pinwheel/results/calibration"
	"pinwheel/verbs"
)

func TestEveryCommittedCalibrationLoads(t *testing.T) {
	names := calibration.Names()
	for _, want := range []string{calibration.Uring, calibration.RDMALike} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing among %v", want, names)
		}
	}
	for _, name := range names {
		c, err := calibration.Named(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Source == "measured" && (c.Touched.Register.R2 < 0.99 || c.Touched.Deregister.R2 < 0.99) {
			t.Errorf("%s: R2 %v, %v: measure again on an idle machine", name, c.Touched.Register.R2, c.Touched.Deregister.R2)
		}
	}
}

func TestDefaultCostsAreThoseOfAnRDMAAdapter(t *testing.T) {
	c, err := calibration.Named(calibration.RDMALike)
	if err != nil {
		t.Fatal(err)
	}
	if c.Costs() != verbs.DefaultCosts {
		t.Errorf("costs of %s are %+v, the default %+v", calibration.RDMALike, c.Costs(), verbs.DefaultCosts)
	}
	if c.Costs().Register.Ns(4) != 17_000 {
		t.Errorf("16 KiB take %d ns, want 17000", c.Costs().Register.Ns(4))
	}
}

func TestUnknownNameListsTheKnown(t *testing.T) {
	if _, err := calibration.Named("no-such"); err == nil || !strings.Contains(err.Error(), calibration.RDMALike) {
		t.Errorf("got %v", err)
	}
}
