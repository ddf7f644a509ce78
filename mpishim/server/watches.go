package main

import (
	"sync"

	"pinwheel/vmwatch"
)

// spareWatches keeps the watchers of dropped domains for new ones: with BPF it
// takes 100 ms to open one, and several times as long to close it.
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
// reader. The first is opened in MPI_Init or pinwheel_init, not in a communication.
func (s *server) openWatch() (*vmwatch.Watcher, error) {
	if w := spareWatch(); w != nil {
		return w, nil
	}
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: s.set.Watch})
	if err == nil && w.Mechanism() == vmwatch.None && s.set.Watch == "auto" && s.sh.rank <= 0 {
		s.engine.Warn("watch", "the kernel offers nothing to watch mappings with (pinwheel doctor says why): "+
			"memory is registered for each use")
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
