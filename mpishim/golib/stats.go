package main

/*
#include "bind.h"
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"pinwheel/helper"
	"pinwheel/internal/outfile"
	"pinwheel/internal/settings"
	"pinwheel/mpishim/report"
)

// writeReport writes what PINWHEEL_STATS asks for: text to standard error, or
// a file, as JSON if it is named so.
func (s *server) writeReport() {
	r := s.summary()
	if s.set.Stats == "y" {
		var b strings.Builder
		_ = report.Write(&b, []report.Rank{r}) // to memory
		_, _ = io.WriteString(os.Stderr, b.String())
		return
	}
	path := s.expand(s.set.Stats)
	err := outfile.Write(path, func(w io.Writer) error {
		if strings.HasSuffix(path, ".json") {
			return json.NewEncoder(w).Encode(r)
		}
		return report.Write(w, []report.Rank{r})
	}, outfile.NoWait)
	if err != nil {
		s.once("stats", fmt.Sprintf("report: %v (see PINWHEEL_STATS)", err))
	}
}

func (s *server) summary() report.Rank {
	host, _ := os.Hostname()
	r := report.Rank{
		World: s.world(), Rank: int(s.sh.rank), Size: int(s.sh.size), Host: host, PID: os.Getpid(), Command: commandLine(),
		Library: C.GoString(&s.sh.library[0]), Policy: s.set.Policy, Helper: s.helperText(),
		Seconds: float64(helper.NowNs()-s.meter.BeganNs()) / 1e9,
		Sites:   s.sites.top(),
	}
	if s.set.Disable {
		r.Policy = "disabled"
	}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, settings.Prefix) && !strings.HasPrefix(e, settings.Prefix+"STATS=") {
			r.Environment = append(r.Environment, e)
		}
	}
	slices.Sort(r.Environment)
	r.VerbsUsed = atomic.LoadUint32(word32(&s.sh.verbs_used)) != 0
	r.PeakPinnedBytes, r.AveragePinnedBytes = s.meter.Read()
	var post, path sample
	count := func(p *C.uint64_t) uint64 { return atomic.LoadUint64(word64(p)) }
	for t := s.threads(); t != nil; t = t.next {
		post.add(count(&t.post_ticks), count(&t.post_samples))
		path.add(count(&t.path_ticks), count(&t.path_samples))
		r.Uses += count(&t.managed)
		r.Plain += count(&t.plain_calls)
		r.Repeated += count(&t.collapsed)
		r.StallNs += count(&t.wait_ns)
		if s.helper != nil {
			r.Lost += count(&t.ring.lost)
		}
	}
	reading := float64(C.pw_ticks_cost(s.sh)) // one is in the time of a post, two in that of a hit
	r.PathNs = (max(post.mean()-reading, 0) + max(path.mean()-2*reading, 0)) * s.clock.nsPerTick()
	r.PathSamples = path.n
	counted := s.past
	for i := range s.domains {
		if d := s.domains.at(uint32(i)); d != nil {
			addStats(&counted, d.cache.Stats())
		}
	}
	r.Mapping = s.mapping
	r.Hits, r.Waited, r.First, r.Late = counted.Hits, counted.Waited, counted.First, counted.Late
	r.HelperRegs, r.HelperDeregs = counted.HelperRegisters, counted.HelperDeregisters
	if s.helper != nil {
		r.HelperCPUNs = s.helper.Stats().CPUNs
		r.Predictions, r.Err05, r.Err5 = s.errs.read()
	}
	return r
}

// sample is a sum of ticks over a number of measurements.
type sample struct{ ticks, n uint64 }

func (s *sample) add(ticks, n uint64) { s.ticks, s.n = s.ticks+ticks, s.n+n }

func (s *sample) mean() float64 { return float64(s.ticks) / float64(max(s.n, 1)) }

func (s *server) helperText() string {
	switch {
	case s.helper == nil:
		return "none"
	case s.set.HelperCPU != settings.Auto:
		return fmt.Sprintf("on processor %d", s.set.HelperCPU)
	}
	return "on an idle core (" + s.set.IdlePolicy + ")"
}

func commandLine() string {
	text, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// expand fills in a file pattern; see settings.Expand.
func (s *server) expand(pattern string) string {
	if s.sh.rank < 0 {
		return settings.Expand(pattern)
	}
	return settings.ExpandRank(pattern, report.Name(s.world(), int(s.sh.rank)))
}

// world is settings.World, "" for the processes that the launcher has started.
func (s *server) world() string {
	if s.sh.spawned == 0 {
		return ""
	}
	return settings.World()
}
