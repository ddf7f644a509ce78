// Package limit bounds what is said about things that may happen again and again.
package limit

import (
	"sync"
	"time"
)

// PerMinute is how many lines a minute there are about one sort of things.
const PerMinute = 20

// Warnings counts lines about one sort of things. All goroutines may use it.
type Warnings struct {
	mu    sync.Mutex
	since time.Time
	lines int
}

// Say gives a line to warn, unless there were too many. The last one says so.
func (w *Warnings) Say(warn func(string), line string) {
	w.mu.Lock()
	if now := time.Now(); now.Sub(w.since) >= time.Minute {
		w.since, w.lines = now, 0
	}
	w.lines++
	k := w.lines
	w.mu.Unlock()
	switch {
	case k < PerMinute:
		warn(line)
	case k == PerMinute:
		warn(line + "; there is no more about such things for a minute")
	}
}
