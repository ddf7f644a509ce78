package pinwheel

import (
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

func TestPredictionsAreGradedOnceTheManagerIsClosed(t *testing.T) {
	testwait.Until(t, "the uses are as regular as predictions need, a quarter of them", func() bool {
		m, th := start(t, Options{Policy: Pinwheel})
		for range 40 {
			transfer(t, th, region(0), 1)
			time.Sleep(time.Millisecond)
		}
		if g := m.Predictions(); g.N != 0 {
			t.Errorf("%d predictions while the helper runs", g.N)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		g := m.Predictions()
		if g.N >= 40 || g.Below05 > g.Below5 || g.Below5 > g.N {
			t.Errorf("40 uses were graded as %+v", g)
		}
		return g.N >= 10
	})
}

func TestPolicyWithoutHelperPredictsNothing(t *testing.T) {
	m, th := start(t, Options{Policy: LeavePinned})
	transfer(t, th, region(0), 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if g := m.Predictions(); g.N != 0 {
		t.Errorf("graded %d predictions", g.N)
	}
}
