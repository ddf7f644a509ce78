package main

/*
#include "bind.h"
*/
import "C"

import (
	"sync/atomic"

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
		CommCPU:     func() int { return int(atomic.LoadInt32((*int32)(&s.sh.comm_cpu))) },
	}
	if s.set.HelperCPU != settings.Auto {
		o.CPUs = []int{int(s.set.HelperCPU)}
	}
	if s.engine.StartHelper(o) {
		atomic.StoreUint32(word32(&s.sh.want_events), 1)
	}
}

func (s *server) stopHelper() {
	atomic.StoreUint32(word32(&s.sh.want_events), 0)
	_ = s.engine.Close() // it does not fail
}
