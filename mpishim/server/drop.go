package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"syscall"
	"unsafe"
)

// drop ends a domain that no thread uses any more. While one does, or references are out, it fails with EBUSY, and C
// asks again.
func (s *server) drop(i uint32) error {
	d := s.domains.at(i)
	if d == nil && s.isUsed(i) {
		return syscall.EBUSY // the thread may be about to ask for it
	}
	if d == nil {
		return nil
	}
	_, err := d.cache.Clean()
	if d.cache.Pinned().Regions == 0 && !s.isUsed(i) {
		s.closeLocals(d) // the usual case: the cache has no Local when it is closed, and unmaps its table
	}
	err = errors.Join(err, d.cache.Close())
	if d.cache.Stats().Lingering > 0 || s.isUsed(i) {
		return syscall.EBUSY
	}
	s.closeLocals(d)
	s.forget(d)
	if err != nil { // the transport meets the regions that could not be deregistered
		s.engine.Warn("drop", err.Error())
	}
	return nil
}

// forget makes room for another domain. The counters of this one stay in the sums.
func (s *server) forget(d *domain) {
	s.dropped.Add(d.cache.Stats())
	s.domains[d.index].Store(nil)
	giveWatch(d.watch)
}

// pd returns the protection domain in a place.
func (s *server) pd(i uint32) unsafe.Pointer {
	return pointerAt(unsafe.Pointer(&s.sh.domain[i].pd)).Load()
}

// isUsed reports whether a thread is using a domain. When it gives back a reference it reads the table of the cache
// even after that is dropped.
func (s *server) isUsed(i uint32) bool {
	for t := s.threads(); t != nil; t = t.next {
		if pd := pointerAt(unsafe.Pointer(&t.using)).Load(); pd != nil && pd == s.pd(i) {
			return true
		}
	}
	return false
}

func (s *server) closeLocals(d *domain) {
	if d.local == nil {
		return
	}
	for t := s.threads(); t != nil; t = t.next {
		localOf(t, d.index).Store(nil)
	}
	for _, f := range append(d.locals, d.local) {
		f.Close()
	}
	d.locals, d.local = nil, nil
}
