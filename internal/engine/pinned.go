package engine

import (
	"sync"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// pinnedBytes counts pinned memory over time: its peak and its time-weighted
// mean. It is safe for concurrent use.
type pinnedBytes struct {
	// mu protects all fields. It is a leaf: taken after provider calls, never
	// across one, and never by a hit.
	mu       sync.Mutex
	beganNs  int64
	lastNs   int64
	bytes    int64
	peak     int64
	integral float64 // byte nanoseconds until lastNs
}

// newPinnedBytes begins to count now, with nothing pinned.
func newPinnedBytes() *pinnedBytes {
	now := clock.NowNs()
	return &pinnedBytes{beganNs: now, lastNs: now}
}

// change adds bytes that are pinned, or were unpinned if negative.
func (b *pinnedBytes) change(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	b.bytes += bytes
	b.peak = max(b.peak, b.bytes)
}

// advance extends the integral until now. It is called with mu.
func (b *pinnedBytes) advance() {
	if now := clock.NowNs(); now > b.lastNs { // clocks of two processors may differ a little
		b.integral += float64(b.bytes) * float64(now-b.lastNs)
		b.lastNs = now
	}
}

// read returns the peak and the mean until now, in bytes.
func (b *pinnedBytes) read() (peak, mean int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	if b.lastNs == b.beganNs {
		return b.peak, b.bytes
	}
	return b.peak, int64(b.integral / float64(b.lastNs-b.beganNs))
}

// Metered is a provider whose registrations an Engine counts as pinned.
type Metered struct {
	verbs.Provider
	pinned *pinnedBytes
}

// Metered returns a provider whose registrations count as pinned by this process.
func (e *Engine) Metered(p verbs.Provider) Metered { return Metered{p, e.pinned} }

// Pinned returns the peak and the mean of what was pinned through providers that are Metered, in bytes.
func (e *Engine) Pinned() (peak, mean int64) { return e.pinned.read() }

// Register implements verbs.Provider.
func (p Metered) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	region, err := p.Provider.Register(r, a)
	if err == nil {
		p.pinned.change(int64(region.Range.Len()))
	}
	return region, err
}

// Deregister implements verbs.Provider.
func (p Metered) Deregister(region verbs.Region) error {
	err := p.Provider.Deregister(region)
	if err == nil {
		p.pinned.change(-int64(region.Range.Len()))
	}
	return err
}
