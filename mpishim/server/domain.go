package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"syscall"

	"go.uber.org/atomic"

	"pinwheel/internal/engine"
	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// domain is the cache of one protection domain. It is made by the server and
// stays while C threads have Locals of it: until the process ends, or until it is
// dropped (drop.go).
type domain struct {
	index      uint32
	generation uint32 // of its slot
	cache      *regcache.Cache
	local      *regcache.Local   // the server's
	locals     []*regcache.Local // those of C threads
	watch      *vmwatch.Watcher
}

// domains are read by the helper and written by the server.
type domains [C.PW_DOMAINS]atomic.Pointer[domain]

func (ds *domains) at(i uint32) *domain { return ds[i].Load() }

// domainShift is where tag lies in the region IDs of the helper.
const domainShift = C.PW_TAG_SHIFT

// tag marks the region IDs of a domain for the helper, as pw_tagged of process.h does in events: caches number their
// regions independently.
func (d *domain) tag() mem.RegionID {
	return mem.RegionID(d.generation*C.PW_DOMAINS+d.index) << domainShift
}

// tagged returns a region ID of the domain's cache as the helper knows it. That of a registration that is not cached
// stays zero.
func (d *domain) tagged(id mem.RegionID) mem.RegionID {
	if id == 0 {
		return 0
	}
	return d.tag() | id
}

// split splits a region ID of the helper. The domain is nil if it was dropped.
func (ds *domains) split(id mem.RegionID) (*domain, mem.RegionID) {
	d := ds.at(uint32(id>>domainShift) % C.PW_DOMAINS)
	if d == nil || d.tag() != id>>domainShift<<domainShift {
		return nil, 0
	}
	return d, id & (1<<domainShift - 1)
}

// domain returns the cache of a protection domain, which it makes at the first use. Until there is a watcher for it, it
// waits or fails with errOpening.
func (s *server) domain(i uint32, wait bool) (*domain, error) {
	if d := s.domains.at(i); d != nil {
		return d, nil
	}
	beganNs := threadCPUNs()
	d, err := s.newDomain(i, wait)
	tookNs := threadCPUNs() - beganNs
	switch err {
	case nil:
		s.openingNs += tookNs
	case errOpening:
		s.opening.serverNs += tookNs
	default:
		s.refuse(err)
	}
	return d, err
}

// refuse tells the user why a domain has no cache.
func (s *server) refuse(err error) {
	if f := fault.In(err); f != nil {
		s.faulted(f)
		return
	}
	s.engine.Warn("domain", err.Error()+"; going on with plain registration")
}

func (s *server) newDomain(i uint32, wait bool) (*domain, error) {
	s.begin()
	w, err := s.watch(i, wait)
	if err != nil {
		return nil, err
	}
	d := &domain{index: i, generation: uint32(s.sh.domain[i].generation), watch: w}
	d.cache, err = regcache.New(s.engine.Metered(&provider{s.sh, s.pd(i)}), regcache.Options{
		AnyCovering: !engine.HasHelper(s.set.Policy),
		Watcher:     w,
		Group:       s.group,
		OnFault:     s.faulted,
		Fallback:    s.sh.linked == 0, // the preload library registers as if we were not there
		OnPublish:   func(a regcache.Published) { s.published(d, a) },
	})
	if err == nil {
		d.local, err = d.cache.Thread()
	}
	if err != nil {
		if d.cache != nil {
			_ = d.cache.Close() // which is empty
		}
		giveWatch(w)
		return nil, err
	}
	for t := s.threads(); t != nil; t = t.next {
		s.hearOf(t, d)
	}
	s.domains[i].Store(d)
	s.mapping = w.Report().How()
	s.info(fmt.Sprintf("policy %s, changes of mappings: %s, helper: %t, threshold %s",
		s.set.Policy, w.Report().How(), s.engine.Helped(), mem.FormatBytes(uint64(s.sh.threshold))))
	return d, nil
}

// publish takes over the first uses that C threads have registered by themselves.
func (ds *domains) publish() {
	for i := range ds {
		if d := ds.at(uint32(i)); d != nil {
			d.cache.Publish()
		}
	}
}

// close ends a domain: it releases idle registrations, and no new ones are made. The watcher ends beside that: the kernel
// lets it wait for all processors, and MPI_Finalize of MPICH lets the other ranks spin meanwhile.
func (ds *domains) close(i uint32) error {
	d := ds.at(i)
	if d == nil {
		return nil
	}
	err := d.cache.Close()
	go func() { _ = d.watch.Close() }() // what it can't remove ends with the process
	return err
}

// Find implements engine.Caches.
func (ds *domains) Find(id mem.RegionID) (*regcache.Cache, mem.RegionID) {
	d, id := ds.split(id)
	if d == nil {
		return nil, 0
	}
	return d.cache, id
}

// Gone implements engine.Caches.
func (ds *domains) Gone(buf []mem.RegionID) []mem.RegionID {
	for i := range ds {
		d := ds.at(uint32(i))
		if d == nil {
			continue
		}
		n := len(buf)
		buf = d.cache.Gone(buf)
		for k := n; k < len(buf); k++ {
			buf[k] |= d.tag()
		}
	}
	return buf
}

// errnoFor returns the errno that the C side gets. Without an error it allocates nothing.
func errnoFor(err error) C.int32_t {
	if err == nil {
		return 0
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return C.int32_t(errno)
	case errors.Is(err, verbs.ErrPinnedMemory) || errors.Is(err, verbs.ErrRegions): // a limit of ours
		return C.int32_t(syscall.ENOMEM)
	}
	return C.int32_t(syscall.EIO)
}
