//go:build cgo

package main

import (
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/internal/engine"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// looked is a demand with two call sites, whose looks the test makes. A tick is a nanosecond.
func looked(t *testing.T, cost float64) (s *server, d *demand) {
	_, s, _ = asked(t)
	allocate(&s.sh.sites)
	allocate(&s.sh.sites.next)
	d = &demand{
		sh: s.sh, cost: cost, registrar: engine.Registrar(&s.domains),
		nsPerTick: func() float64 { return 1 }, faulted: s.faulted, spent: s.engine.SpentOnDemand,
	}
	d.rule = schedule.NewDemand(cost, clock.NowNs())
	d.permit()
	return s, d
}

// used is a region of the cache that the second site has used last, and its reference.
func used(t *testing.T, s *server) regcache.Ref {
	t.Helper()
	buffer, _ := mem.NewRange(1<<20, 16*mem.PageSize)
	ref, _, err := s.domains.at(0).local.Acquire(buffer, verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	u := &s.sh.last_uses[7]
	u.site = s.sh.sites.next
	set(&u.start, 1<<20)
	set(&u.region, uint64(s.domains.at(0).tagged(ref.ID())))
	set(&s.sh.sites.next.uses, 1)
	return ref
}

// What the cache has of a site that is served on demand ends at a look, unless it is in use.
func TestMemoryOfASiteOnDemandDoesNotStay(t *testing.T) {
	s, d := looked(t, 0.005)
	ref := used(t, s)
	site := s.sh.sites.next
	d.look()
	if n := s.group.Usage().Regions; n != 1 || site.freed != 0 {
		t.Fatalf("%d registrations while one is in use, %d freed", n, site.freed)
	}
	s.domains.at(0).local.Release(ref)
	set32(&site.kept, 1)
	d.release()
	if n := s.group.Usage().Regions; n != 1 {
		t.Errorf("%d registrations of a site where memory stays", n)
	}
	d.look()
	if n := s.group.Usage().Regions; n != 0 || site.freed != 1 || site.spent_ticks == 0 || s.sh.last_uses[7].region != 0 {
		t.Errorf("%d registrations left, %d freed in %d ns", n, site.freed, site.spent_ticks)
	}
	if site.kept != 0 || s.sh.sites.kept != 0 {
		t.Error("memory stays at sites that have cost nothing")
	}
}

// A site that costs more than the budget keeps its memory. What was spent before a rule began is not its.
func TestSitesThatCostTooMuchKeepTheirMemory(t *testing.T) {
	s, d := looked(t, 0.005)
	d.look()
	if s.sh.demand_limit == 0 {
		t.Fatal("nothing may be spent")
	}
	cheap, dear := s.sh.sites, s.sh.sites.next
	for _, n := range []uint64{1, 2} {
		set(&cheap.uses, n)
		set(&cheap.freed, n)
		set(&dear.uses, 10*n)
		set(&dear.freed, 10*n)
		set(&dear.spent_ticks, n*50_000_000)
		set(&s.sh.demand_ticks, n*50_000_000)
		d.look()
		if c := s.engine.Cost(); c.DemandNs != int64(n)*50_000_000 {
			t.Errorf("%d ns were spent, and the engine says %+v", n*50_000_000, c)
		}
	}
	if cheap.kept != 0 || dear.kept != 1 {
		t.Errorf("memory stays at the cheap site: %d, at the dear one: %d; want 0 and 1", cheap.kept, dear.kept)
	}
	if limit := uint64(s.sh.demand_limit); limit >= uint64(s.sh.demand_ticks) {
		t.Errorf("%d ns may be spent in all, and %d were", limit, s.sh.demand_ticks)
	}
	d.set(true)
	if limit := uint64(s.sh.demand_limit); limit <= uint64(s.sh.demand_ticks) {
		t.Errorf("a rule that begins anew lets %d ns be spent in all, and %d were before", limit, s.sh.demand_ticks)
	}
	d.set(false)
	if s.sh.demand_limit != 0 {
		t.Error("memory is registered on demand after that was ended")
	}
}
