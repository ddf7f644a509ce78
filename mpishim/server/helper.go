package main

/*
#include "bind.h"
*/
import "C"

import (
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
}
