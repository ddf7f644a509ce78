package pinwheel

import (
	"go.uber.org/atomic"

	"pinwheel/helper"
	"pinwheel/queue"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// Thread is one communication thread's access to the Manager. It belongs to one
// goroutine at a time.
type Thread struct {
	m     *Manager
	local *regcache.Local
	mode  threadMode
	// dq takes completed uses to the helper; nil without a helper.
	dq    *queue.Ring[schedule.Event]
	event schedule.Event // scratch of Release
	stats threadStats
}

// threadMode is how a Thread registers memory for its uses.
type threadMode uint8

const (
	cached   threadMode = iota
	uncached            // each use by itself (policy OnDemand, Disable)
	closed              // not at all: the Thread was closed
)

// threadStats are counters that only misses change: hits must not pay for them.
type threadStats struct {
	stallNs  atomic.Int64 // in Acquire, where it was no hit
	faulted  atomic.Int64 // uses registered past the cache after a fault
	misses   int64        // calls of Acquire that were no hits; of the goroutine that has the Thread
	lostUses uint64       // of closed Threads; protected by Manager.mu
}

// Thread returns a handle for the calling goroutine. Close gives it back.
func (m *Manager) Thread() (*Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return nil, ErrClosed
	}
	local, err := m.cache.Thread()
	if err != nil {
		return nil, err
	}
	t := &Thread{m: m, local: local}
	if m.opt.Disable || m.opt.Policy == OnDemand {
		t.mode = uncached
	}
	if m.engine.Helped() {
		t.dq = newRing(m)
		m.engine.Attach(t.dq)
	}
	m.commCPU.Store(int64(helper.CurrentCPU()))
	m.threads[t] = struct{}{}
	return t, nil
}

func newRing(m *Manager) *queue.Ring[schedule.Event] {
	return queue.NewRing[schedule.Event](m.opt.QueueEntries)
}

// Misses returns how many calls of Acquire were no hits: they registered memory, waited for a registration, or failed.
// It is for the goroutine that has the Thread.
func (t *Thread) Misses() int64 { return t.stats.misses }

// Close gives the handle back. Uses that it acquired may still be released,
// by this or by another Thread. A second Close does nothing.
func (t *Thread) Close() {
	m := t.m
	if t.mode == closed {
		return
	}
	t.mode = closed
	if t.dq != nil {
		m.engine.Detach(t.dq)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.threads, t)
	m.closedThreads.stallNs.Add(t.stats.stallNs.Load())
	m.closedThreads.faulted.Add(t.stats.faulted.Load())
	m.closedThreads.lostUses += t.lost()
	t.local.Close()
}

// lost returns how many uses the helper has not heard of.
func (t *Thread) lost() uint64 {
	if t.dq == nil {
		return 0
	}
	return t.dq.Lost()
}
