package main

import (
	"sync"

	"pinwheel/vmwatch"
)

// spareWatches are watchers of domains that were dropped, for the next ones: with
// BPF it takes 100 ms to get one, and several times that to be rid of it.
var spareWatches struct {
	mu  sync.Mutex // protects all: there may be several servers
	all []*vmwatch.Watcher
}

// giveWatch takes a watcher back that watches nothing.
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
// reader. The first is opened in MPI_Init or pinwheel_init, not in a communication.
func (s *server) openWatch() (*vmwatch.Watcher, error) {
	if w := spareWatch(); w != nil {
		return w, nil
	}
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: s.set.Watch})
	if err == nil && w.Mechanism() == vmwatch.None && s.set.Watch == "auto" && s.sh.rank <= 0 {
		s.engine.Warn("watch", "the kernel offers nothing to watch mappings with (pinwheel doctor says why): memory is registered for each use")
	}
	return w, err
}

// takeWatch returns the watcher that was opened ahead, or a new one.
func (s *server) takeWatch() (w *vmwatch.Watcher, err error) {
	w, s.watch = s.watch, nil
	if w == nil {
		w, err = s.openWatch()
	}
	return w, err
}
