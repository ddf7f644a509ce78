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

	"pinwheel/internal/fault"
	"pinwheel/regcache"
	"pinwheel/vmwatch"
)

// spareWatches keeps watchers that no domain has: those of dropped domains, and those that were just opened.
var spareWatches struct {
	mu  sync.Mutex // protects all; a process may have several servers
	all []*vmwatch.Watcher
}

// giveWatch keeps a watcher that watches nothing for later.
func giveWatch(w *vmwatch.Watcher) {
	spareWatches.mu.Lock()
	defer spareWatches.mu.Unlock()
	spareWatches.all = append(spareWatches.all, w)
}

// unneeded is how long a watcher that was opened ahead, and that slows every system call of the node, waits for a domain.
// Programs whose messages grow reach the threshold sooner; those that don't have nothing registered through us.
const unneeded = 100 * time.Millisecond

// giveWatchFor is giveWatch for as long as patience: then the watcher is closed if nobody has taken it.
func giveWatchFor(w *vmwatch.Watcher, patience time.Duration) {
	giveWatch(w)
	time.AfterFunc(patience, func() {
		if takeWatch(w) {
			_ = w.Close() // what it can't remove ends with the process
		}
	})
}

// takeWatch takes a certain spare watcher, if it is there.
func takeWatch(w *vmwatch.Watcher) bool {
	spareWatches.mu.Lock()
	defer spareWatches.mu.Unlock()
	i := slices.Index(spareWatches.all, w)
	if i >= 0 {
		spareWatches.all = slices.Delete(spareWatches.all, i, i+1)
	}
	return i >= 0
}

// spareWatch returns a spare watcher, or nil.
func spareWatch() (w *vmwatch.Watcher) {
	spareWatches.mu.Lock()
	defer spareWatches.mu.Unlock()
	if n := len(spareWatches.all); n > 0 {
		w, spareWatches.all = spareWatches.all[n-1], spareWatches.all[:n-1]
	}
	return w
}

// errOpening is the error of a domain whose watcher is being opened.
var errOpening = errors.New("the watch of mappings is being opened")

// opening is a watcher that is being opened, on a thread of its own. That takes 2 to 10 ms of processor time, but
// the kernel makes it wait again and again until every processor has switched threads: 35 to 260 ms where
// ranks keep all of them busy. No rank waits for that. Until then its memory is registered for each use.
type opening struct {
	done  chan struct{} // closed when the fields below are set
	watch *vmwatch.Watcher
	err   error
	cpuNs int64 // processor time of that thread

	serverNs int64 // processor time of the server before that; only the server uses it
}

// openWatch is replaced by tests.
var openWatch = vmwatch.Open

func (s *server) newOpening() *opening {
	o := &opening{done: make(chan struct{})}
	options := s.watchOptions(s.set.Watch)
	options.OnRefused = func(message string) { s.engine.Warn(message, message) }
	go func() {
		defer s.ringDoorbell()
		defer close(o.done)
		o.err = onOwnThread(func() (err error) {
			beganNs := threadCPUNs()
			defer func() { o.cpuNs = threadCPUNs() - beganNs }()
			_ = regcache.ProbeMembarrier() // the first of a process waits in the same way
			o.watch, err = openWatch(options)
			return err
		})
	}()
	return o
}

// watchOptions are for a mechanism, on the board of the node if the process has joined one.
func (s *server) watchOptions(mechanism string) vmwatch.Options {
	o := vmwatch.Options{Mechanism: mechanism, Service: s.set.Watchd}
	if m := s.engine.Node(); m != nil {
		o.Board = m
	}
	return o
}

// onOwnThread calls f on the thread of the calling goroutine, which is locked to it for good, and lets that run on any
// processor. A panic of f is an error.
func onOwnThread(f func() error) error {
	runtime.LockOSThread() // the thread ends with the goroutine
	unbind()
	return fault.Contain(f)
}

// ringDoorbell wakes the server.
func (s *server) ringDoorbell() {
	at32(&s.sh.doorbell).Add(1)
	C.pw_futex_wake(&s.sh.doorbell)
}

// watch returns a watcher for a domain; each has its own, because a watcher has one reader. If there is none, one is
// opened: the domain waits for it, or fails with errOpening and is not asked for until there is one.
func (s *server) watch(domain uint32, wait bool) (*vmwatch.Watcher, error) {
	s.asksWatch = true
	if w := spareWatch(); w != nil {
		return w, nil
	}
	if s.opening == nil {
		s.opening = s.newOpening()
	}
	if !wait {
		at32(&s.sh.domain[domain].opening).Store(1)
		return nil, errOpening
	}
	return s.awaitOpening()
}

// opened takes over the watcher that was being opened, if it is open by now.
func (s *server) opened() {
	if s.opening == nil {
		return
	}
	select {
	case <-s.opening.done:
		w, err := s.awaitOpening()
		if err != nil {
			s.refuse(err)
			return
		}
		if w.Mechanism().SlowsSystemCalls() {
			giveWatchFor(w, unneeded)
		} else {
			giveWatch(w)
		}
	default:
	}
}

// endOpening waits for the watcher that is being opened, which uses the node, before the process leaves that.
func (s *server) endOpening() {
	if s.opening == nil {
		return
	}
	w, err := s.awaitOpening()
	if err != nil {
		s.refuse(err)
		return
	}
	go func() { _ = w.Close() }() // see domains.close
}

// awaitOpening waits for the watcher that is being opened. Then every domain may be asked for.
func (s *server) awaitOpening() (*vmwatch.Watcher, error) {
	o := s.opening
	<-o.done
	s.opening = nil
	s.openerNs += o.cpuNs
	for i := range s.sh.domain {
		at32(&s.sh.domain[i].opening).Store(0)
	}
	if o.err != nil {
		at32(&s.sh.mode).Store(C.PW_PLAIN) // no later use would fare better
		return nil, o.err
	}
	s.openingNs += o.serverNs + o.cpuNs
	if o.watch.Mechanism() == vmwatch.None && s.set.Watch == "auto" && s.sh.rank <= 0 {
		s.engine.Warn("watch", "the kernel offers nothing to watch mappings with (pinwheel doctor says why): "+
			"nothing is cached")
	}
	return o.watch, nil
}
