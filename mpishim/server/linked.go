package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"math"
	"sync"
	"syscall"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// This file answers questions that only libpinwheel-api.so asks.

// serveLinked answers one of them.
func (s *server) serveLinked(t *C.struct_pw_thread) (ref regcache.Ref, acquired bool, err error) {
	m := &t.mail
	switch m.ask {
	case C.PW_ASK_OPEN:
		_, err = s.domain(uint32(m.domain), true)
	case C.PW_ASK_QUERY:
		ref, acquired, err = s.query(t)
	case C.PW_ASK_LIMIT:
		err = s.limit(uint32(m.domain), regcache.Limits{Bytes: bound(m.bytes), Regions: bound(m.addr)})
	case C.PW_ASK_RELEASE_IDLE:
		var n int
		n, err = s.clean(uint32(m.domain))
		m.bytes = C.uint64_t(n)
	case C.PW_ASK_COUNT:
		s.count(uint32(m.domain), &m.counts)
	case C.PW_ASK_PREPARE:
		err = s.registerAhead(t)
	case C.PW_ASK_END:
		s.end()
	}
	return ref, acquired, err
}

func (s *server) query(t *C.struct_pw_thread) (regcache.Ref, bool, error) {
	d, r, err := s.request(t)
	if err != nil {
		return regcache.Ref{}, false, err
	}
	d.cache.Sweep() // it was no hit
	ref, ok := d.local.IsRegistered(r, verbs.Access(t.mail.access))
	if !ok {
		return ref, false, syscall.ENOENT
	}
	*(*regcache.Ref)(unsafe.Pointer(&t.mail.ref)) = ref
	return ref, true, nil
}

// limit sets the limits of a domain, or of the process, which can't exceed those of the settings.
func (s *server) limit(i uint32, l regcache.Limits) error {
	if s.group == nil {
		return nil // nothing is cached
	}
	if i == C.PW_ALL {
		return s.group.SetLimits(regcache.Limits{Bytes: min(l.Bytes, s.budgetBytes), Regions: l.Regions})
	}
	d, err := s.domain(i, true)
	if err != nil {
		return err
	}
	return d.cache.SetLimits(l)
}

// bound converts a limit of C.
func bound(n C.uint64_t) int64 { return int64(min(uint64(n), math.MaxInt64)) }

func (s *server) clean(i uint32) (n int, err error) {
	if d := s.domains.at(i % C.PW_DOMAINS); i != C.PW_ALL && d != nil {
		return d.cache.Clean()
	}
	for k := range s.domains {
		if d := s.domains.at(uint32(k)); d != nil && i == C.PW_ALL {
			more, e := d.cache.Clean()
			n, err = n+more, errors.Join(err, e)
		}
	}
	return n, err
}

// count adds up the counters of one domain, or of all domains there ever were.
func (s *server) count(i uint32, c *C.struct_pw_counts) {
	var sum regcache.Stats
	if i == C.PW_ALL {
		sum = s.dropped
	}
	for k := range s.domains {
		if d := s.domains.at(uint32(k)); d != nil && (i == C.PW_ALL || i == uint32(k)) {
			sum.Add(d.cache.Stats())
		}
	}
	if i == C.PW_ALL {
		sum.PeakPinnedBytes, _ = s.engine.Pinned()
	}
	*c = C.struct_pw_counts{
		hits: C.uint64_t(sum.Hits), waited: C.uint64_t(sum.Waited), first: C.uint64_t(sum.First), late: C.uint64_t(sum.Late),
		failed:           C.uint64_t(sum.Failed),
		helper_registers: C.uint64_t(sum.HelperRegisters), helper_deregisters: C.uint64_t(sum.HelperDeregisters),
		evicted: C.uint64_t(sum.Evicted), invalidated: C.uint64_t(sum.Invalidated),
		pinned_bytes: C.uint64_t(sum.Pinned.Bytes), pinned_regions: C.uint64_t(sum.Pinned.Regions),
		peak_pinned_bytes: C.uint64_t(sum.PeakPinnedBytes),
	}
}

// end ends the server, whose domains were dropped before.
func (s *server) end() {
	s.ended = true
	if s.group != nil {
		_ = s.group.SetLimits(regcache.Limits{Bytes: s.budgetBytes, Regions: mem.Unlimited})
	}
	at32(&s.sh.serving).Store(0)
	at32(&s.sh.started).Store(0)
}

// theGroup limits the registrations of all libraries of the process together.
var theGroup struct {
	once  sync.Once
	group *regcache.Group
}

func processGroup(budgetBytes int64) *regcache.Group {
	theGroup.once.Do(func() { theGroup.group = regcache.NewGroup(budgetBytes) })
	return theGroup.group
}
