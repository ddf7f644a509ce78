package capi

/*
#include "objects.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"slices"
	"sync/atomic"
	"unsafe"

	"pinwheel/mem"
)

// subscription is what a pinwheel_watch_range stands for.
type subscription struct {
	c      *C.pinwheel_watch_range
	w      *watch
	r      mem.Range // whole pages
	token  uint64
	verify bool
}

func subscriptionOf(c *C.pinwheel_watch_range) *subscription {
	return cgo.Handle(c.handle).Value().(*subscription)
}

func (s *subscription) state() uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&s.c.state)))
}

// setState is called with w.mu held.
func (s *subscription) setState(state uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&s.c.state)), state)
}

//export watchSubscribe
func watchSubscribe(
	c *C.pinwheel_watch, address C.uintptr_t, bytes C.size_t, entry unsafe.Pointer, to **C.pinwheel_watch_range,
) C.int {
	return guarded(func() error {
		w := watchOf(c)
		r, err := mem.NewRange(mem.Addr(address), uint64(bytes))
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.see() // what came before is no matter of this range
		s := &subscription{w: w, r: r.PageAligned()}
		if s.token, s.verify, err = w.watcher.Watch(r); err != nil {
			return err
		}
		if s.verify {
			w.watcher.Pinning(s.token)
		}
		s.c = (*C.pinwheel_watch_range)(C.calloc(1, C.sizeof_pinwheel_watch_range))
		s.c.watch, s.c.entry = c, entry
		s.c.handle = C.uintptr_t(cgo.NewHandle(s))
		w.ranges.Add(s.r, s)
		w.all[s] = true
		*to = s.c
		return nil
	})
}

//export watchRegistered
func watchRegistered(c *C.pinwheel_watch_range) C.int {
	return guarded(func() error {
		s := subscriptionOf(c)
		w := s.w
		if err := w.watcher.Pinned(s.token); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.see()
		switch {
		case s.state() != C.WATCH_NEW:
			return fmt.Errorf("registered %v: %w", s.r, mem.ErrChanged)
		case s.verify:
			s.setState(C.WATCH_VERIFIED)
		default:
			s.setState(C.WATCH_NOTIFIED)
		}
		return nil
	})
}

// watchValid is asked if the word has moved, and for a range that is to be verified.
//
//export watchValid
func watchValid(c *C.pinwheel_watch_range) (valid C.int) {
	guarded(func() error {
		s := subscriptionOf(c)
		w := s.w
		same := w.watcher.Unchanged(s.token)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.see() // what was over by then has moved the word before
		if !same && s.state() == C.WATCH_VERIFIED {
			w.change(s)
		}
		if state := s.state(); state == C.WATCH_NOTIFIED || state == C.WATCH_VERIFIED {
			valid = 1
		}
		return nil
	})
	return valid
}

//export watchUnsubscribe
func watchUnsubscribe(c *C.pinwheel_watch_range) C.int {
	return guarded(func() error {
		s := subscriptionOf(c)
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.w.ranges.Remove(s.r, s)
		s.w.setWaiting(slices.DeleteFunc(s.w.waiting, func(o *subscription) bool { return o == s }))
		delete(s.w.all, s)
		s.w.watcher.Unwatch(s.token)
		s.free()
		return nil
	})
}

// free frees the object of C.
func (s *subscription) free() {
	cgo.Handle(s.c.handle).Delete()
	C.free(unsafe.Pointer(s.c))
}
