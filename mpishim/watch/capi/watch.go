// Package capi has the functions of pinwheel_watch.h. libpinwheel-watch.so is this package and nothing else; a Go
// program that imports it has them for its C code.
//
// A hit that needs no look into the kernel is answered in C (api.c): the word of the vmwatch.Watcher is what was
// seen, and the range has not changed up to then. What a thread finds to have moved it sees to for all ranges.
package capi

/*
#cgo CFLAGS: -O2
#cgo LDFLAGS: -lpthread
#include "objects.h"
*/
import "C"

import (
	"errors"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"pinwheel/internal/console"
	"pinwheel/internal/fault"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/vmwatch"
)

// watch is what a pinwheel_watch stands for.
type watch struct {
	c       *C.pinwheel_watch
	watcher *vmwatch.Watcher

	// mu orders all that follows, and what is written to the objects of C. The locks of the Watcher are taken inside it.
	mu      sync.Mutex
	ranges  mem.Index[*subscription]
	all     map[*subscription]bool
	waiting []*subscription // changed, and no drain has returned them
}

// refused says that nothing may be watched.
var refused bool

// Refuse has no watch open from now on. Call it before any function of C.
func Refuse() { refused = true }

// guarded returns the status of f for C, to which no panic may get.
func guarded(f func() error) (status C.int) {
	switch err, errno := fault.Contain(f), syscall.Errno(0); {
	case err == nil:
		return 0
	case errors.Is(err, vmwatch.ErrNotCacheable), errors.Is(err, vmwatch.ErrUnavailable):
		return -C.ENOTSUP
	case errors.Is(err, mem.ErrChanged):
		return -C.EAGAIN
	case errors.Is(err, mem.ErrEmpty), errors.Is(err, mem.ErrOverflow), errors.Is(err, vmwatch.ErrMechanism):
		return -C.EINVAL
	case errors.As(err, &errno) && errno > 0:
		return -C.int(errno)
	}
	return -C.EIO
}

// warn writes one line, if the user wants to see any.
func warn(message string) {
	if set, _ := settings.FromEnvironment(); set.Log != "off" {
		console.Write("pinwheel: " + message + "\n")
	}
}

//export watchWarn
func watchWarn(message *C.char) C.int {
	return guarded(func() error { warn(C.GoString(message)); return nil })
}

//export watchOpen
func watchOpen(mechanism, service *C.char, to **C.pinwheel_watch) C.int {
	return guarded(func() error {
		if refused {
			return vmwatch.ErrUnavailable
		}
		set, _ := settings.FromEnvironment()
		o := vmwatch.Options{Mechanism: set.Watch, Service: set.Watchd, OnRefused: warn}
		if mechanism != nil {
			o.Mechanism = C.GoString(mechanism)
		}
		if service != nil {
			o.Service = C.GoString(service)
		}
		watcher, err := open(o)
		if err != nil {
			return err
		}
		if watcher.Mechanism() == vmwatch.None && o.Mechanism == "auto" {
			warn("the kernel offers nothing to watch mappings with (pinwheel doctor says why): nothing is cached")
		}
		w := &watch{watcher: watcher, all: map[*subscription]bool{}}
		w.c = (*C.pinwheel_watch)(C.calloc(1, C.sizeof_pinwheel_watch)) // calloc of cgo does not fail
		w.c.word = (*C.uint64_t)(unsafe.Pointer(watcher.Word()))
		w.c.handle = C.uintptr_t(cgo.NewHandle(w))
		if watcher.Mechanism() == vmwatch.None {
			w.c.is_blind = 1
		}
		w.see()
		*to = w.c
		return nil
	})
}

// open opens a Watcher on a thread of ours: what that writes to a socket of the watch service is then no matter of the
// program's SIGPIPE.
func open(o vmwatch.Options) (w *vmwatch.Watcher, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = fault.Contain(func() (err error) {
			w, err = vmwatch.Open(o)
			return err
		})
	}()
	<-done
	return w, err
}

// watchOf returns the watch of an object of C.
func watchOf(c *C.pinwheel_watch) *watch { return cgo.Handle(c.handle).Value().(*watch) }

//export watchClose
func watchClose(c *C.pinwheel_watch) C.int {
	return guarded(func() error {
		w := watchOf(c)
		for s := range w.all {
			s.free()
		}
		cgo.Handle(c.handle).Delete()
		defer C.free(unsafe.Pointer(c))
		return w.watcher.Close()
	})
}

//export watchDescribe
func watchDescribe(c *C.pinwheel_watch, text *C.char, size C.size_t) C.int {
	return guarded(func() error {
		to := unsafe.Slice((*byte)(unsafe.Pointer(text)), size)
		to[copy(to[:size-1], watchOf(c).watcher.Report().String())] = 0
		return nil
	})
}

// see brings the states up to date with the word. w.mu is held, or w is not known yet.
func (w *watch) see() {
	generation := w.watcher.Drain(func(r mem.Range) { w.ranges.Overlapping(r, w.change) })
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&w.c.seen)), generation)
}

// change has a subscription changed for good. w.mu is held.
func (w *watch) change(s *subscription) {
	if s.state() == C.WATCH_CHANGED {
		return
	}
	s.setState(C.WATCH_CHANGED)
	w.setWaiting(append(w.waiting, s))
}

// setWaiting replaces w.waiting. w.mu is held.
func (w *watch) setWaiting(s []*subscription) {
	w.waiting = s
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&w.c.waiting)), uint32(len(s)))
}

//export watchDrain
func watchDrain(c *C.pinwheel_watch, to *unsafe.Pointer, most C.int) (n C.int) {
	status := guarded(func() error {
		w := watchOf(c)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.see()
		n = min(most, C.int(len(w.waiting)))
		for i, s := range w.waiting[:n] {
			unsafe.Slice(to, n)[i] = s.c.entry
		}
		w.setWaiting(w.waiting[n:])
		return nil
	})
	if status < 0 {
		return status
	}
	return n
}

//export watchRun
func watchRun(session unsafe.Pointer) C.int {
	return guarded(func() error { go C.watch_tell(session); return nil })
}
