// Package account keeps the account of pinned bytes over time that reports are
// made from.
package account

import (
	"sync"

	"pinwheel/internal/clock"
)

// Mean is the peak and the time-weighted mean of what is pinned. It is safe
// for concurrent use.
type Mean struct {
	// mu protects all of it. It is a leaf: taken after provider calls, never
	// across one, and never by a hit.
	mu       sync.Mutex
	beganNs  int64
	lastNs   int64
	bytes    int64
	peak     int64
	integral float64 // byte nanoseconds until lastNs
}

// NewMean returns an account that begins now, with nothing pinned.
func NewMean() *Mean {
	now := clock.NowNs()
	return &Mean{beganNs: now, lastNs: now}
}

// Change books that so many bytes more are pinned, or fewer if negative.
func (m *Mean) Change(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	m.bytes += bytes
	m.peak = max(m.peak, m.bytes)
}

// advance books the time until now. It is called with mu.
func (m *Mean) advance() {
	if now := clock.NowNs(); now > m.lastNs { // clocks of two processors may differ by a little
		m.integral += float64(m.bytes) * float64(now-m.lastNs)
		m.lastNs = now
	}
}

// Read returns the peak and the mean until now, in bytes.
func (m *Mean) Read() (peak, mean int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	if m.lastNs == m.beganNs {
		return m.peak, m.bytes
	}
	return m.peak, int64(m.integral / float64(m.lastNs-m.beganNs))
}

// BeganNs returns when the account began, on the clock of clock.NowNs.
func (m *Mean) BeganNs() int64 { return m.beganNs }
