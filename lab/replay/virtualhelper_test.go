package replay

import (
	"testing"

	"pinwheel/schedule"
)

// hearing is a decider that checks when it is told of misses.
type hearing struct {
	schedule.Decider
	t    *testing.T
	v    *virtualHelper
	told int64
	now  int64 // that it was told of without any delay
}

func (h *hearing) Missed(m schedule.Miss, nowNs int64) {
	if v := h.v; v.doing.Kind != schedule.Idle || v.asleep || m.NeedNs > nowNs {
		h.t.Errorf("at %d the helper hears of a miss at %d: %+v, asleep %t", nowNs, m.NeedNs, v.doing.Action, v.asleep)
	}
	h.told++
	if nowNs == m.NeedNs {
		h.now++
	}
	h.Decider.Missed(m, nowNs)
}

// A helper thread hears of a miss when it looks, and not in the middle of a registration.
func TestHelperHearsOfMissesWhenItLooks(t *testing.T) {
	o := Options{Policies: []string{Pinwheel}}
	o.EnsureDefaults()
	e, err := newEngine(&o, recorded{nasTrace(t, "mg.C.4")})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.install(Pinwheel, 0); err != nil {
		t.Fatal(err)
	}
	all := make([]*hearing, len(e.ranks))
	for i, r := range e.ranks {
		all[i] = &hearing{Decider: r.helper.loop.Decider, t: t, v: r.helper}
		r.helper.loop.Decider = all[i]
	}
	if err := e.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i, r := range e.ranks {
		// Of what comes at the very end it need not hear.
		missed := r.stats.FirstRegs + r.stats.LateRegs + r.stats.LateWaits
		if told := all[i].told; told == 0 || told > missed || told < missed-1 {
			t.Errorf("rank %d has missed %d regions, and was told of %d", i, missed, told)
		}
		if now := all[i].now; now > 0 {
			t.Errorf("rank %d was told of %d misses before they were registered", i, now)
		}
	}
}

func TestHelperHearsOfMissesOnceTheyAreRegistered(t *testing.T) {
	v, m := &virtualHelper{}, schedule.Misses{}
	v.missed(7, 1, 5)
	v.missed(8, 2, 6)
	for nowNs, want := range []int{4: 0, 5: 1, 6: 2, 7: 2} {
		d := &told{}
		v.hear(&m, int64(nowNs))
		before := m
		if m.Tell(d, int64(nowNs)); nowNs >= 4 && d.n != want {
			t.Errorf("at %d it has heard of %d misses, want %d", nowNs, d.n, want)
		}
		m = before
	}
}

// told counts misses.
type told struct {
	schedule.Decider
	n int
}

func (d *told) Missed(schedule.Miss, int64) { d.n++ }
