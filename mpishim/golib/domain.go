package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// domain is the cache of one protection domain. It is made by the server and
// never dropped: C threads keep their fronts of it.
type domain struct {
	index  uint32
	cache  *regcache.Cache
	front  *regcache.Front   // the server's
	fronts []*regcache.Front // those of C threads
	watch  *watching
}

// domains are read by the helper and written by the server.
type domains [C.PW_DOMAINS]atomic.Pointer[domain]

func (ds *domains) at(i uint32) *domain { return ds[i].Load() }

// domainShift is where the index of the domain lies in the region IDs that the
// helper sees: caches number their regions independently.
const domainShift = 48

// of splits an ID of the helper.
func (ds *domains) of(id mem.RegionID) (*domain, mem.RegionID) {
	return ds.at(uint32(id>>domainShift) % C.PW_DOMAINS), id & (1<<domainShift - 1)
}

// domain returns the cache of a protection domain, made at its first use.
func (s *server) domain(i uint32) (*domain, error) {
	if d := s.domains.at(i); d != nil {
		return d, nil
	}
	w, err := s.takeWatch()
	if err != nil {
		return nil, err
	}
	d := &domain{index: i, watch: w}
	d.cache, err = regcache.New(&provider{s.sh, s.sh.domain[i].pd, s.meter}, regcache.Options{
		NoHomes: !s.helped(),
		Watcher: w.Watcher,
		Group:   s.group,
	})
	if err != nil {
		return nil, err
	}
	if d.front, err = d.cache.Thread(); err != nil {
		return nil, err
	}
	s.domains[i].Store(d)
	s.info(fmt.Sprintf("policy %s, changes of mappings: %s, helper: %t, threshold %s",
		s.set.Policy, w.name, s.helper != nil, mem.FormatBytes(uint64(s.sh.threshold))))
	return d, nil
}

// watching is how changes of mappings are noticed. A watcher has one reader,
// so each cache has its own.
type watching struct {
	regcache.Watcher
	real *vmwatch.Watcher // to be closed; nil: our own wrappers tell
	name string           // for people
}

// openWatch opens a watcher. With BPF that takes some 100 ms, so the first
// is opened in MPI_Init, not in a communication.
func (s *server) openWatch() (*watching, error) {
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: s.set.Watch})
	if err != nil {
		return nil, err
	}
	if w.Mechanism() != vmwatch.None || s.set.Watch != "auto" {
		return &watching{w, w, w.Mechanism().String()}, nil
	}
	const gap = "the kernel offers nothing to watch mappings with: munmap, mremap, madvise, mmap(MAP_FIXED) and shmdt are intercepted, " +
		"free() is kept from unmapping, and other ways (system calls past the C library) go unseen"
	if s.sh.rank <= 0 {
		s.once("watch", gap)
	}
	C.pw_keep_freed_memory()
	atomic.StoreUint32(word32(&s.sh.want_hooks), 1)
	h := &hooks{sh: s.sh, seen: atomic.LoadUint64(word64(&s.sh.change_head))}
	return &watching{h, nil, "intercepted calls"}, w.Close()
}

// takeWatch returns the watcher that was opened ahead, or a new one.
func (s *server) takeWatch() (w *watching, err error) {
	w, s.watch = s.watch, nil
	if w == nil {
		w, err = s.openWatch()
	}
	return w, err
}

// close ends a domain: what is idle is released, and nothing new is made.
func (ds *domains) close(i uint32) error {
	d := ds.at(i)
	if d == nil {
		return nil
	}
	err := d.cache.Close()
	if d.watch.real != nil {
		err = errors.Join(err, d.watch.real.Close())
	}
	return err
}

// registrar makes the caches a helper.Registrar.
type registrar struct{ *domains }

func (r registrar) Register(id mem.RegionID) error {
	d, id := r.of(id)
	return answer(d.cache.TryRegister(id))
}

func (r registrar) Deregister(id mem.RegionID) error {
	d, id := r.of(id)
	return answer(d.cache.TryDeregister(id))
}

// answer says in the helper's terms what a cache did.
func answer(did bool, err error) error {
	switch {
	case errors.Is(err, regcache.ErrUnknown) || errors.Is(err, regcache.ErrClosed):
		return fmt.Errorf("%w: %w", helper.ErrGone, err)
	case errors.Is(err, regcache.ErrInUse):
		return fmt.Errorf("%w: %w", helper.ErrInUse, err)
	case err == nil && !did:
		return helper.ErrAlready
	}
	return err
}

// gone is helper.ThreadOptions.Gone. If a cache could not remember all, the
// helper learns of the others when it acts on them.
func (ds *domains) gone(buf []mem.RegionID) []mem.RegionID {
	for i := range ds {
		d := ds.at(uint32(i))
		if d == nil {
			return buf // they are made in order, nearly
		}
		n := len(buf)
		buf, _ = d.cache.Gone(buf)
		for k := n; k < len(buf); k++ {
			buf[k] |= mem.RegionID(i) << domainShift
		}
	}
	return buf
}

// errnoFor is what the C side is told: any error makes it register plainly.
func errnoFor(err error) C.int32_t {
	var e *verbs.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e) && e.Errno != 0:
		return C.int32_t(e.Errno)
	}
	return C.int32_t(syscall.EIO)
}

// hooks is the regcache.Watcher over the changes that our own wrappers tell.
type hooks struct {
	sh   *C.struct_pw_shared
	seen uint64 // changes dealt with; used under the cache's lock
}

func (h *hooks) Word() *uint64 { return word64(&h.sh.change_word) }

func (h *hooks) Watch(mem.Range) (token uint64, verify bool, err error) { return 0, false, nil }
func (h *hooks) Pinning(uint64)                                         {}
func (h *hooks) Pinned(uint64) error                                    { return nil }
func (h *hooks) Unchanged(uint64) bool                                  { return true }
func (h *hooks) Unwatch(uint64)                                         {}

func (h *hooks) Drain(drop func(mem.Range)) (generation uint64) {
	generation = atomic.LoadUint64(h.Word())
	head := atomic.LoadUint64(word64(&h.sh.change_head))
	everything := mem.Range{Start: 0, End: ^mem.Addr(0)}
	if head-h.seen > C.PW_CHANGES {
		h.seen = head
		drop(everything)
		return generation
	}
	for ; h.seen != head; h.seen++ {
		c := &h.sh.change[h.seen%C.PW_CHANGES]
		r := mem.Range{Start: mem.Addr(c.start), End: mem.Addr(c.end)}
		if atomic.LoadUint64(word64(&c.turn)) != h.seen+1 {
			r = everything // being written, or overwritten
		}
		drop(r)
	}
	return generation
}
