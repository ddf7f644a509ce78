package pinwheel

import (
	"sync"

	"pinwheel/helper"
)

// pinnedMean is the time-weighted mean of what is pinned.
type pinnedMean struct {
	// mu protects all of it. It is a leaf: taken after provider calls, never
	// across one, and never by a hit.
	mu       sync.Mutex
	beganNs  int64
	lastNs   int64
	bytes    int64
	integral float64 // byte nanoseconds until lastNs
}

func newPinnedMean() *pinnedMean {
	now := helper.NowNs()
	return &pinnedMean{beganNs: now, lastNs: now}
}

func (p *pinnedMean) change(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	p.bytes += bytes
}

// advance books the time until now. It is called with mu.
func (p *pinnedMean) advance() {
	if now := helper.NowNs(); now > p.lastNs { // clocks of two processors may differ by a little
		p.integral += float64(p.bytes) * float64(now-p.lastNs)
		p.lastNs = now
	}
}

func (p *pinnedMean) mean() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	if p.lastNs == p.beganNs {
		return p.bytes
	}
	return int64(p.integral / float64(p.lastNs-p.beganNs))
}
