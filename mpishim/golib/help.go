package main

/*
#include "bind.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"

	"pinwheel/helper"
	"pinwheel/internal/settings"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// itemNs is what one DQ item and one RQ item cost the helper beside the
// registration itself.
const itemNs = 5_000 // 5 us

// costs are those of a usual RDMA adapter, to begin with: 16 us and 0.25 us a
// page. The helper corrects them by what it measures.
var costs = verbs.Costs{
	Register:   verbs.Cost{PerPageNs: 250, FixedNs: 16_000},
	Deregister: verbs.Cost{PerPageNs: 120, FixedNs: 16_000},
}

// startHelper starts the helper thread and, unless it is told where to run,
// what looks for an idle core. Without, memory stays registered.
func (s *server) startHelper() {
	cpu := helper.AnyCPU
	if s.set.HelperCPU != settings.Auto {
		cpu = int(s.set.HelperCPU)
	}
	var p predictor.Predictor
	o := helper.SchedulerOptions{Costs: costs, ItemNs: itemNs}
	if po := (predictor.Options{Window: int(s.set.Window)}); s.set.Policy == "paper" {
		p = predictor.NewPaper(po)
	} else {
		p = predictor.NewPinwheel(po)
		o.Keep = true
	}
	s.errs = newErrorMeter(p)
	var err error
	s.helper, err = helper.StartThread(helper.ThreadOptions{
		Decider:   helper.NewScheduler(s.errs, o),
		Registrar: registrar{&s.domains},
		Clock:     helper.DedicatedClock{},
		CPU:       cpu,
		Gone:      s.domains.gone,
		OnFault: func(f *helper.Fault) {
			s.sayFault(f, "going on without helper thread, memory stays registered (or, should that come again, with plain registration)")
		},
	})
	if err != nil {
		s.once("helper", fmt.Sprintf("%v; going on without helper thread, memory stays registered", err))
		return
	}
	atomic.StoreUint32(word32(&s.sh.want_events), 1)
	if cpu == helper.AnyCPU {
		s.startPlacer()
	}
}

func (s *server) startPlacer() {
	policy, err := helper.ParseIdlePolicy(s.set.IdlePolicy)
	if err == nil {
		s.placer, err = helper.StartPlacer(helper.PlacerOptions{
			Policy:  policy,
			Bytes:   s.group.Bytes,
			CommCPU: func() int { return int(atomic.LoadInt32((*int32)(&s.sh.comm_cpu))) },
			Apply:   s.helper.Place,
			Warn:    func(err error) { s.warn(err.Error()) },
		})
	}
	if err != nil {
		s.once("placer", fmt.Sprintf("%v; the kernel places the helper thread", err))
	}
}

func (s *server) stopHelper() {
	atomic.StoreUint32(word32(&s.sh.want_events), 0)
	if s.placer != nil {
		s.placer.Close()
	}
	if s.helper != nil {
		s.helper.Close()
	}
}
