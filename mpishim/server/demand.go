package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"go.uber.org/atomic"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/internal/fault"
	"pinwheel/internal/report"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// demand has the threads of the program register memory on demand while the helper has no processor of its own
// (mpishim/preload/demand.h). A few times a second it reads what the call sites have counted, and tells them what
// schedule.Demand decides. Where memory is new each time, they do so without it.
type demand struct {
	sh        *C.struct_pw_shared
	cost      float64
	registrar helper.Registrar
	nsPerTick func() float64
	faulted   func(*fault.Fault)
	spent     func(ns int64, priceNs float64) // is told what all uses have cost; engine.Engine.SpentOnDemand

	mu   sync.Mutex // orders begin and end
	stop chan struct{}
	done chan struct{}

	// Of the looks, one after the other.
	rule   *schedule.Demand
	sites  []*C.struct_pw_site // in the order in which they were met
	counts []schedule.DemandCounts
	baseNs int64                   // what had been spent when rule began
	ownNs  atomic.Int64            // processor time of all looks
	ids    []mem.RegionID          // scratch
	ended  []*C.struct_pw_last_use // likewise
}

// set begins or ends registration on demand. It returns when what it ends has ended.
func (d *demand) set(on bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case on && d.stop == nil:
		d.baseNs = d.spentNs()
		d.rule = schedule.NewDemand(d.cost, clock.NowNs())
		d.permit()
		d.stop, d.done = make(chan struct{}), make(chan struct{})
		go d.run(d.stop, d.done)
	case !on && d.stop != nil:
		close(d.stop)
		<-d.done
		d.stop = nil
		d.spent(d.spentNs(), 0)
	}
}

func (d *demand) run(stop, done chan struct{}) {
	runtime.LockOSThread() // whose processor time counts; it ends with the goroutine
	defer close(done)
	defer at64(&d.sh.demand_limit).Store(0)
	if f := fault.In(fault.Contain(func() error { d.loop(stop); return nil })); f != nil {
		d.faulted(f)
	}
}

// loop looks until it is to stop.
func (d *demand) loop(stop chan struct{}) {
	beganNs := threadCPUNs() - d.ownNs.Load()
	timer := time.NewTimer(time.Duration(d.rule.PauseNs()))
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		d.look()
		d.ownNs.Store(threadCPUNs() - beganNs)
		timer.Reset(time.Duration(d.rule.PauseNs()))
	}
}

// spentNs is what was spent since the process began.
func (d *demand) spentNs() int64 { return d.ns(&d.sh.demand_ticks) + d.ownNs.Load() }

// ns reads a sum of ticks.
func (d *demand) ns(ticks *C.uint64_t) int64 {
	return int64(float64(at64(ticks).Load()) * d.nsPerTick())
}

// permit says how much may be spent until the next look.
func (d *demand) permit() {
	limitNs := float64(d.baseNs + d.rule.LimitNs() - d.ownNs.Load())
	at64(&d.sh.demand_limit).Store(max(1, uint64(max(0, limitNs)/d.nsPerTick())))
}

// look tells the rule what was counted, and the call sites what it decides.
func (d *demand) look() {
	d.count()
	d.rule.Look(clock.NowNs(), d.spentNs()-d.baseNs, d.counts)
	for i, s := range d.sites {
		kept := uint32(0)
		if d.rule.Kept(i) {
			kept = 1
		}
		at32(&s.kept).Store(kept)
	}
	d.permit()
	d.spent(d.spentNs(), d.rule.PriceNs())
	if d.spentNs()-d.baseNs < d.rule.LimitNs() {
		d.release()
	}
}

// count reads the counts of all sites.
func (d *demand) count() {
	known := len(d.sites)
	for s := d.firstSite(); s != nil && (known == 0 || s != d.sites[known-1]); s = s.next {
		d.sites = append(d.sites, s)
	}
	slices.Reverse(d.sites[known:]) // the newest comes first in the list
	d.counts = d.counts[:0]
	nsPerTick := d.nsPerTick()
	for _, s := range d.sites {
		d.counts = append(d.counts, schedule.DemandCounts{
			Uses: int64(at64(&s.uses).Load()), Freed: int64(at64(&s.freed).Load()),
			SpentNs:     int64(float64(at64(&s.spent_ticks).Load()) * nsPerTick),
			SavedByteNs: float64(at64(&s.saved).Load()) * float64(mem.PageSize*C.PW_LONG_TICKS) * nsPerTick,
		})
	}
}

func (d *demand) firstSite() *C.struct_pw_site {
	return (*C.struct_pw_site)(pointerAt(unsafe.Pointer(&d.sh.sites)).Load())
}

// release deregisters what stayed registered after a use at a site where it does so no longer. What that takes and saves
// counts as if the thread had done it.
func (d *demand) release() {
	d.ids, d.ended = d.ids[:0], d.ended[:0]
	for i := range d.sh.last_uses {
		u := &d.sh.last_uses[i]
		id := at64(&u.region).Load()
		if s := siteAt(&u.site); id != 0 && s != nil && at32(&s.kept).Load() == 0 {
			d.ids, d.ended = append(d.ids, mem.RegionID(id)), append(d.ended, u)
		}
	}
	if len(d.ids) == 0 {
		return
	}
	d.registrar.Prepare(d.ids)
	for i, id := range d.ids {
		startNs := clock.NowNs()
		err := d.registrar.Deregister(id)
		tookNs := clock.NowNs() - startNs
		if errors.Is(err, schedule.ErrInUse) {
			continue
		}
		at64(&d.ended[i].region).CompareAndSwap(uint64(id), 0)
		if s := siteAt(&d.ended[i].site); err == nil {
			at64(&s.freed).Add(1)
			at64(&s.spent_ticks).Add(uint64(float64(tookNs) / d.nsPerTick()))
		}
	}
}

// report fills in what was done on demand. The memory that was pinned so at most counts as if it had come on top of the
// cache's peak.
func (d *demand) report(r *report.Rank) {
	if d == nil {
		return
	}
	heldByteNs := float64(at64(&d.sh.demand_held).Load()) * float64(mem.PageSize*C.PW_LONG_TICKS) * d.nsPerTick()
	r.Demand = report.Demand{
		Uses: at64(&d.sh.demand_uses).Load(), Fresh: at64(&d.sh.demand_fresh_uses).Load(),
		Bytes:      int64(heldByteNs / max(r.Seconds*1e9, 1)),
		RegisterNs: d.ns(&d.sh.demand_all_ticks), LookNs: d.ownNs.Load(),
	}
	r.Cost.Share, r.Cost.DemandNs = d.cost, d.spentNs()
	r.RegisterNs += r.Demand.RegisterNs
	r.AveragePinnedBytes += r.Demand.Bytes
	r.PeakPinnedBytes += int64(at64(&d.sh.demand_peak_bytes).Load())
}

func siteAt(p **C.struct_pw_site) *C.struct_pw_site {
	return (*C.struct_pw_site)(pointerAt(unsafe.Pointer(p)).Load())
}
