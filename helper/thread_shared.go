package helper

import (
	"sync"

	"go.uber.org/atomic"

	"pinwheel/schedule"
)

// sharedMisses are those of a Thread.
type sharedMisses struct {
	some atomic.Bool // spares the helper the lock

	mu sync.Mutex // protects m; held for a few instructions
	m  schedule.Misses
}

func (s *sharedMisses) add(m schedule.Miss) {
	s.mu.Lock()
	s.m.Add(m)
	s.some.Store(true)
	s.mu.Unlock()
}

// take moves all of them to *to.
func (s *sharedMisses) take(to *schedule.Misses, _ int64) {
	if !s.some.Load() {
		return
	}
	s.mu.Lock()
	*to, s.m = s.m, schedule.Misses{}
	s.some.Store(false)
	s.mu.Unlock()
}

// sharedHistogram is one that the helper writes while others read it.
type sharedHistogram struct {
	mu sync.Mutex // protects h; held for a few instructions
	h  schedule.Histogram
}

func (s *sharedHistogram) note(ns int64) {
	s.mu.Lock()
	s.h.Note(ns)
	s.mu.Unlock()
}

func (s *sharedHistogram) load() schedule.Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.h
}
