package main

/*
#include "bind.h"
*/
import "C"

import (
	"fmt"

	"golang.org/x/sys/unix"

	"pinwheel/internal/report"
	"pinwheel/internal/settings"
)

// writeReport writes what PINWHEEL_STATS asks for.
func (s *server) writeReport() {
	if err := s.summary().Save(s.expand(s.set.Stats)); err != nil {
		s.engine.Warn("stats", fmt.Sprintf("report: %v (see PINWHEEL_STATS)", err))
	}
}

// checkTransport tells the user if the settings that "pinwheel run" gives to the transport have not turned off
// its cache. One rank is enough.
func (s *server) checkTransport() {
	if s.sh.kept_regs == 0 || s.sh.rank > 0 {
		return
	}
	r := s.summary()
	if line := r.CacheWarning(); line != "" {
		s.engine.Warn("cache", line)
	}
}

func (s *server) summary() report.Rank {
	counted := s.dropped
	for i := range s.domains {
		if d := s.domains.at(uint32(i)); d != nil {
			counted.Add(d.cache.Stats())
		}
	}
	r := s.engine.Report(counted, nameSite)
	r.World, r.Rank, r.Size = s.world(), int(s.sh.rank), int(s.sh.size)
	r.Library, r.Policy, r.Mapping = C.GoString(&s.sh.library[0]), s.set.Policy, s.mapping
	if s.set.Disable {
		r.Policy = "disabled"
	}
	r.ThresholdBytes, r.Kept = int64(s.sh.threshold), uint64(s.sh.kept_regs)
	if caller := at64(&s.sh.caller).Load(); caller != 0 {
		r.Transport = symbolAt(caller).file
	}
	s.demand.report(&r)
	if r.ServerCPUNs = threadCPUNs() + s.openerNs + r.Demand.LookNs; r.ServerCPUNs > 0 {
		r.CPUNs = max(r.CPUNs-r.ServerCPUNs, 0)
		r.OpeningCPUNs = s.openingNs
	}
	r.VerbsUsed = at32(&s.sh.verbs_used).Load() != 0
	var announce, path sample
	count := func(p *C.uint64_t) uint64 { return at64(p).Load() }
	for t := s.threads(); t != nil; t = t.next {
		announce.add(count(&t.announce_ticks), count(&t.announce_samples))
		path.add(count(&t.path_ticks), count(&t.path_samples))
		r.Calls += count(&t.seq)
		r.Uses += count(&t.managed)
		r.Plain += count(&t.plain_calls)
		r.Early += count(&t.early)
		r.Passed += count(&t.passed)
		r.PassedBytes += count(&t.passed_bytes)
		r.Repeated += count(&t.repeated)
		r.Large += uint64(at32(&t.announced_count).Load())
		r.StallNs += count(&t.wait_ns)
		if s.engine.Helped() {
			r.Lost += count(&t.ring.lost)
		}
	}
	reading := float64(C.pw_ticks_cost(s.sh)) // one is in the time of an announcement, two in that of a hit
	r.PathNs = (max(announce.mean()-reading, 0) + max(path.mean()-2*reading, 0)) * s.clock.NsPerTick()
	r.PathSamples = path.n
	return r
}

// threadCPUNs returns the processor time of the calling thread.
func threadCPUNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // Linux always has it
	return ts.Nano()
}

// sample is a sum of ticks over a number of measurements.
type sample struct{ ticks, n uint64 }

func (s *sample) add(ticks, n uint64) { s.ticks, s.n = s.ticks+ticks, s.n+n }

func (s *sample) mean() float64 { return float64(s.ticks) / float64(max(s.n, 1)) }

// expand fills in a file pattern as settings.Expand does, by the rank in MPI.
func (s *server) expand(pattern string) string {
	if s.sh.rank < 0 {
		return settings.Expand(pattern)
	}
	return settings.ExpandRank(pattern, report.Name(s.world(), int(s.sh.rank)))
}

// world returns settings.World, or "" for a process that the launcher started.
func (s *server) world() string {
	if s.sh.spawned == 0 {
		return ""
	}
	return settings.World()
}
