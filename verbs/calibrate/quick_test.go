package calibrate

import (
	"math"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// modelled is a clock by which a simulated provider takes what it should.
func modelled(p *sim.Provider) func() int64 {
	return func() int64 { s := p.Stats(); return s.RegisterNs + s.DeregisterNs }
}

func TestMeasuredCostsAreTheProviders(t *testing.T) {
	for name, want := range map[string]verbs.Costs{
		"adapter":  {Register: verbs.Cost{PerPageNs: 250, FixedNs: 16_000}, Deregister: verbs.Cost{PerPageNs: 125, FixedNs: 8_000}},
		"io_uring": {Register: verbs.Cost{PerPageNs: 58, FixedNs: 1_200}, Deregister: verbs.Cost{PerPageNs: 0, FixedNs: 1_500}},
		"slow":     {Register: verbs.Cost{PerPageNs: 10_000, FixedNs: 900_000}, Deregister: verbs.Cost{PerPageNs: 10, FixedNs: 70_000}},
	} {
		disturbed, interruption := 0, time.Millisecond/10
		if name == "slow" {
			interruption = 50 * time.Millisecond
		}
		p := sim.New(sim.Options{Costs: want, Delay: func(op sim.Op, r mem.Range) time.Duration {
			if disturbed++; disturbed%5 == 1 {
				return interruption
			}
			return 0
		}})
		got, err := quick(p, 0, modelled(p))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ got, want verbs.Cost }{{got.Register, want.Register}, {got.Deregister, want.Deregister}} {
			if math.Abs(c.got.PerPageNs-c.want.PerPageNs) > 0.5 || math.Abs(c.got.FixedNs-c.want.FixedNs) > 1 {
				t.Errorf("%s: measured %+v, want %+v", name, c.got, c.want)
			}
		}
		if s := p.Stats(); s.PinnedBytes != 0 || s.RegisterNs+s.DeregisterNs > 2_500_000 && s.Registers > 2*leastRounds {
			t.Errorf("%s: %d bytes left pinned, %d registrations in %d us", name, s.PinnedBytes, s.Registers, (s.RegisterNs+s.DeregisterNs)/1000)
		}
	}
}

func TestNothingIsMeasuredBeyondALimit(t *testing.T) {
	little := measuredPages*int64(mem.PageSize) - 1
	for name, c := range map[string]struct {
		limits verbs.Limits
		budget int64
	}{
		"budget":   {budget: little},
		"provider": {limits: verbs.Limits{MaxPinnedBytes: little}},
		"region":   {limits: verbs.Limits{MaxRegionBytes: little}},
	} {
		p := sim.New(sim.Options{Limits: c.limits})
		if _, err := quick(p, c.budget, modelled(p)); err == nil || p.Stats().Registers > 0 {
			t.Errorf("limited by %s: error %v, %d registrations", name, err, p.Stats().Registers)
		}
	}
}
