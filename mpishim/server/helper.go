package main

/*
#include "bind.h"
*/
import "C"

import (
	"fmt"

	"pinwheel/internal/clock"
	"pinwheel/internal/engine"
	"pinwheel/internal/settings"
)

// startHelper starts the helper thread if the policy has one, and has the C side tell it of uses.
func (s *server) startHelper() {
	o := engine.HelperOptions{
		Policy: s.set.Policy, Window: int(s.set.Window), Caches: &s.domains,
		Clock:       clock.Dedicated{},
		IdlePolicy:  s.set.IdlePolicy,
		PinnedBytes: s.group.Bytes,
		CommCPU:     func() int { return int32Of(&s.sh.comm_cpu) },
	}
	if s.set.HelperCPU != settings.Auto {
		o.CPUs = []int{int(s.set.HelperCPU)}
	}
	if s.engine.StartHelper(o) {
		at32(&s.sh.want_events).Store(1)
	}
}

func (s *server) stopHelper() {
	at32(&s.sh.want_events).Store(0)
	_ = s.engine.Close() // it does not fail
	if h := s.engine.HelperStats(); s.set.Log == "debug" && h.CPUNs > 0 {
		ms := func(ns int64) float64 { return float64(ns) / 1e6 }
		s.info(fmt.Sprintf("helper: %.2f ms of processor time, %.2f ms of it in %d registrations and %d deregistrations; "+
			"%d wake-ups, %d uses; %d deadlines, %.2f ms late at most", ms(h.CPUNs), ms(h.ActionNs), h.Registers, h.Deregs,
			h.Wakeups, h.Events, h.Deadlines, ms(h.LateMaxNs)))
	}
}
