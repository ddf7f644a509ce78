package pinwheel

import (
	"math"
	"syscall"
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
		disturbed := 0
		p := sim.New(sim.Options{Costs: want, Delay: func(op sim.Op, r mem.Range) time.Duration {
			if disturbed++; name != "slow" && disturbed%5 == 1 { // of a slow one there is but one round
				return time.Millisecond / 10
			}
			return 0
		}})
		got, err := measureCosts(p, 0, modelled(p))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ got, want verbs.Cost }{{got.Register, want.Register}, {got.Deregister, want.Deregister}} {
			if math.Abs(c.got.PerPageNs-c.want.PerPageNs) > 0.5 || math.Abs(c.got.FixedNs-c.want.FixedNs) > 1 {
				t.Errorf("%s: measured %+v, want %+v", name, c.got, c.want)
			}
		}
		if s := p.Stats(); s.PinnedBytes != 0 || s.RegisterNs+s.DeregisterNs > 2_500_000 && s.Registers > 2 {
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
		if _, err := measureCosts(p, c.budget, modelled(p)); err == nil || p.Stats().Registers > 0 {
			t.Errorf("limited by %s: error %v, %d registrations", name, err, p.Stats().Registers)
		}
	}
}

func TestCostsAreMeasuredOnlyIfAHelperNeedsThem(t *testing.T) {
	refuse := func(sim.Op, mem.Range) error { return syscall.ENOMEM }
	given := verbs.Costs{Register: verbs.Cost{FixedNs: 5_000}}
	for name, c := range map[string]struct {
		o        Options
		fail     func(sim.Op, mem.Range) error
		measures bool
		costs    verbs.Costs // the helper's, unless measured
	}{
		"unknown":    {measures: true},
		"given":      {o: Options{Costs: given}, costs: given},
		"no helper":  {o: Options{Policy: LeavePinned}},
		"impossible": {fail: refuse, costs: defaultCosts},
	} {
		p := sim.New(sim.Options{Fail: c.fail})
		c.o.Provider, c.o.IdlePolicy = p, IdleIgnore
		c.o.Warn = func(s string) { t.Errorf("%s: %s", name, s) }
		m, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if n := p.Stats().Registers; (n > 0) != c.measures {
			t.Errorf("%s: %d registrations by New", name, n)
		}
		if got := m.opt.Costs; !c.measures && got != c.costs || c.measures && got.Register.FixedNs == 0 {
			t.Errorf("%s: costs %+v", name, got)
		}
	}
}
