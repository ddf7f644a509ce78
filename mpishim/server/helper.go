package main

/*
#include "bind.h"
*/
import "C"

import (
	"cmp"
	"fmt"

	"pinwheel/internal/clock"
	"pinwheel/internal/engine"
	"pinwheel/internal/settings"
	"pinwheel/profile"
)

// startHelper starts the helper thread if the policy has one, and has the C side tell it of uses.
func (s *server) startHelper() {
	o := engine.HelperOptions{
		Policy: s.set.Policy, Window: int(s.set.Window), Caches: &s.domains,
		Clock:       clock.Dedicated{},
		IdlePolicy:  s.set.IdlePolicy,
		Cost:        cmp.Or(s.set.Cost, engine.NoCost),
		PinnedBytes: s.group.Bytes,
		Profile:     s.profile(),
		CommCPU:     func() int { return int32Of(&s.sh.comm_cpu) },
		Procs:       atLeastProcs,
	}
	if s.sh.linked == 0 && s.set.Policy == "pinwheel" {
		s.demand = &demand{
			sh: s.sh, cost: s.set.Cost, registrar: engine.Registrar(&s.domains),
			nsPerTick: s.clock.NsPerTick, faulted: s.faulted, spent: s.engine.SpentOnDemand,
		}
		o.OnDemand = s.serveOnDemand
	}
	if s.set.HelperCPU != settings.Auto {
		o.CPUs = []int{int(s.set.HelperCPU)}
	}
	wants := at32(&s.sh.want_events)
	wants.Store(1)
	switch {
	case !s.engine.StartHelper(o):
		wants.Store(0)
	case s.demand != nil && s.set.Cost > 0:
		at32(&s.sh.demand_fresh).Store(1)
	}
}

// serveOnDemand begins or ends that threads register memory on demand. The helper hears of no use meanwhile.
func (s *server) serveOnDemand(on bool) {
	wants := uint32(1)
	if on {
		wants = 0
	}
	at32(&s.sh.want_events).Store(wants)
	s.demand.set(on)
}

// profile says where the process keeps what it learns; nil if it doesn't. The worlds of MPI_Comm_spawn have the ranks
// of the first one, and keep nothing.
func (s *server) profile() *engine.ProfileOptions {
	if s.sh.spawned != 0 {
		return nil
	}
	dir, err := s.set.ProfileDir()
	if err != nil && engine.ProfileNode().First(profile.Key{}, "directory") {
		s.engine.Warn("profile", fmt.Sprintf("profile: %v (see PINWHEEL_PROFILE)", err))
	}
	p := engine.Profiles{Dir: dir, LimitBytes: s.set.ProfileBytes, Force: s.set.ProfileForce}
	o := p.Of(s.rank(), int(s.sh.size), uint64(s.sh.threshold))
	if o != nil {
		o.Loads = loads
	}
	return o
}

func (s *server) stopHelper() {
	at32(&s.sh.want_events).Store(0)
	at32(&s.sh.demand_fresh).Store(0)
	_ = s.engine.Close() // it does not fail
	s.demand.set(false)
	if h := s.engine.HelperStats(); s.set.Log == "debug" && h.CPUNs > 0 {
		ms := func(ns int64) float64 { return float64(ns) / 1e6 }
		s.info(fmt.Sprintf("helper: %.2f ms of processor time, %.2f ms of it in %d registrations and %d deregistrations; "+
			"%d wake-ups, %d uses; %d planned registrations, %.2f ms late at most",
			ms(h.CPUNs), ms(h.ActionNs), h.Registers, h.Deregs, h.Wakeups, h.Events, h.Starts.Count(), ms(h.Starts.MaxNs())))
	}
}
