package main

/*
#include "bind.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/trace"
	"pinwheel/vmwatch"
)

// endings tells when recorded buffers end: when their pages are unmapped, moved or discarded, as a registration cache
// hears of it. The C side notes before each call how many changes there were, so each change has its place among the
// calls.
// Only BPF serves for that: the C side has the changes of a buffer noticed before its first call returns.
type endings struct {
	opened chan struct{}    // closed when the fields below are set
	watch  *vmwatch.Watcher // nil: none
	err    error

	openingNs int64 // how long it took; set with watch

	buffers mem.Set     // pages that were recorded, and have not ended
	changes []mem.Range // noticed, but not all of them before the last call
	next    uint64      // number of the first of them
	lost    uint64      // times that changes were not all known
}

// newEndings begins to watch, on a thread of its own as for domains. The process joins the others of its job, one of
// which loads the programs for all.
func (s *server) newEndings(ring *C.struct_pw_recorder) *endings {
	e := &endings{opened: make(chan struct{})}
	mechanism := s.set.Watch
	switch mechanism {
	case "auto":
		mechanism = "bpf"
	case "uffd", "pfn", "none":
		e.err = errors.New("PINWHEEL_WATCH rules BPF out")
		close(e.opened)
		return e
	}
	if s.manages() {
		s.join()
	}
	options := s.watchOptions(mechanism)
	go func() {
		defer close(e.opened)
		e.err = onOwnThread(func() error {
			beganNs := clock.NowNs()
			w, err := openWatch(options)
			if err != nil {
				return err
			}
			e.watch, e.next, e.openingNs = w, w.Generation(), clock.NowNs()-beganNs
			ring.interest = (*C.uint32_t)(w.Interest())
			pointerAt(unsafe.Pointer(&ring.changes)).Store(unsafe.Pointer(w.Word()))
			return nil
		})
	}()
	if s.set.WatchWait {
		<-e.opened
	}
	return e
}

// used notes whole pages of a recorded buffer.
func (e *endings) used(r mem.Range) {
	if !e.buffers.Contains(r) {
		e.buffers.Add(r)
	}
}

// before calls changed with the changes that came before a call, and after the last call. changes is what their count
// was.
func (e *endings) before(changes uint64, changed func(mem.Range) error) error {
	if changes == 0 {
		return nil // nothing is watched yet
	}
	<-e.opened // it is: the count is the watcher's
	if changes > e.next+uint64(len(e.changes)) {
		next, all := e.watch.Changes(e.next+uint64(len(e.changes)), func(r mem.Range) { e.changes = append(e.changes, r) })
		if !all {
			e.lost++
			e.changes, e.next = nil, next
		}
	}
	n := int(min(max(changes, e.next)-e.next, uint64(len(e.changes))))
	e.next += uint64(n)
	var err error
	for _, r := range e.changes[:n] {
		err = cmp.Or(err, changed(r))
	}
	e.changes = slices.Delete(e.changes, 0, n)
	return err
}

// end returns what of a change were recorded buffers; they have ended. A change may be larger than any address space.
func (e *endings) end(change mem.Range) mem.Range {
	r := e.buffers.Within(change)
	e.buffers.Remove(r)
	return r
}

// unseen is called at the end.
func (e *endings) unseen() (all []trace.Unseen) {
	<-e.opened
	switch {
	case e.err != nil:
		all = append(all, trace.Unseen{What: "ends of buffers, which take BPF to notice (pinwheel doctor says why it can't be used)"})
	case e.lost > 0:
		all = append(all, trace.Unseen{What: "changes of mappings that came too fast", Times: e.lost})
	}
	return all
}

// close ends the watch, after the last call was recorded. See domains.close.
func (e *endings) close() {
	<-e.opened
	if e.watch != nil {
		go func() { _ = e.watch.Close() }()
	}
}

// unnamed counts registrations of memory that no recorded call was given.
type unnamed struct {
	times     uint64
	now       mem.Set // not ended, as far as that is noticed
	peakBytes uint64  // of now
}

// add counts a registration of whole pages.
func (u *unnamed) add(r mem.Range) {
	u.times++
	if !u.now.Contains(r) {
		u.now.Add(r)
		u.peakBytes = max(u.peakBytes, u.now.Bytes())
	}
}
