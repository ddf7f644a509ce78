package main

/*
#include "bind.h"
*/
import "C"

import (
	"sync"

	"pinwheel/vmwatch"
)

// spareWatches keeps the watchers of dropped domains for new ones: with BPF it
// takes some 15 ms of processor time to open one.
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

// spareWatch returns a spare watcher, or nil.
func spareWatch() (w *vmwatch.Watcher) {
	spareWatches.mu.Lock()
	defer spareWatches.mu.Unlock()
	if n := len(spareWatches.all); n > 0 {
		w, spareWatches.all = spareWatches.all[n-1], spareWatches.all[:n-1]
	}
	return w
}

// openWatch returns a watcher; each cache has its own, because a watcher has one
// reader. The first of a process takes some 15 ms of processor time, which a job without large
// messages does not pay.
func (s *server) openWatch() (*vmwatch.Watcher, error) {
	if w := spareWatch(); w != nil {
		return w, nil
	}
	o := vmwatch.Options{Mechanism: s.set.Watch}
	if m := s.engine.Node(); m != nil {
		o.Board = m
	}
	w, err := vmwatch.Open(o)
	if err != nil {
		at32(&s.sh.mode).Store(C.PW_PLAIN) // no later use would fare better
		return nil, err
	}
	if w.Mechanism() == vmwatch.None && s.set.Watch == "auto" && s.sh.rank <= 0 {
		s.engine.Warn("watch", "the kernel offers nothing to watch mappings with (pinwheel doctor says why): "+
			"memory is registered for each use")
	}
	return w, nil
}
