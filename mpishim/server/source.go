package main

/*
#include "bind.h"
*/
import "C"

import (
	"unsafe"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/queue"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// source is the consumer of the DQ of one C thread. It implements helper.Source.
type source struct {
	ring  queue.Consumer[C.struct_pw_event]
	clock *clock.Ticks
	early []schedule.Event // come before those in ring
}

func newSource(ring *C.struct_pw_ring, clock *clock.Ticks) *source {
	slots := (*[C.PW_RING]queue.Slot[C.struct_pw_event])(unsafe.Pointer(&ring.slots))
	return &source{ring: queue.NewConsumer(slots[:], (*uint64)(&ring.tail)), clock: clock}
}

// Pop moves the oldest event to *e. Helper only.
func (s *source) Pop(e *schedule.Event) bool {
	if len(s.early) > 0 {
		*e, s.early = s.early[0], s.early[1:]
		return true
	}
	for s.next(e) {
		if e.Region&C.PW_EVENT_EARLY == 0 {
			return true
		}
	} // a use past the cache that ended after there was one: it is not heard of
	return false
}

// next moves the oldest event of the ring to *e.
func (s *source) next(e *schedule.Event) bool {
	var c C.struct_pw_event
	if !s.ring.Pop(&c) {
		return false
	}
	s.convert(e, &c)
	return true
}

// takeEarly finds the regions of the uses past the cache of a domain, which has one from now on. The helper
// learns from them when those buffers are needed again. It is called before the source is attached, and before any
// thread registers something in the domain.
func (s *source) takeEarly(d *domain) {
	var e schedule.Event
	for s.next(&e) {
		if (e.Region&^C.PW_EVENT_EARLY)>>domainShift<<domainShift != d.tag() {
			continue
		}
		if id, known := d.cache.Identify(e.Range, verbs.Access(e.Region&(1<<domainShift-1))); known {
			e.Region, e.Early = d.tagged(id), true
			s.early = append(s.early, e)
		}
	}
}

func (s *source) convert(e *schedule.Event, c *C.struct_pw_event) {
	e.Region = mem.RegionID(c.region)
	e.Range = mem.Range{Start: mem.Addr(c.start), End: mem.Addr(c.end)}
	e.StartNs, e.EndNs = s.clock.Ns(uint64(c.start_ticks)), s.clock.Ns(uint64(c.end_ticks))
	e.Early = false // the helper keeps one Event for all
	site := callSite(c.op, c.site)
	e.Op, e.Frames = site.Op, site.Frames
	e.Pages = uint64(c.pages)
}

// callSite is a call of a site, which is NULL if nobody knows it.
func callSite(op C.uint32_t, site *C.struct_pw_site) predictor.CallSite {
	c := predictor.CallSite{Op: predictor.Op(op)}
	if site != nil {
		for i := range c.Frames {
			c.Frames[i] = uint64(site.frames[i])
		}
	}
	return c
}

func newTicks(sh *C.struct_pw_shared) *clock.Ticks {
	return clock.NewTicks(func() uint64 { return uint64(C.pw_read_ticks(sh)) }, clock.NowNs)
}
