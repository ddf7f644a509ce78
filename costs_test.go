package pinwheel

import (
	"syscall"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

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
		"impossible": {fail: refuse, costs: verbs.DefaultCosts},
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
