// Package noop is a provider that registers nothing, so that a benchmark
// measures the cache alone.
package noop

import (
	"time"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Provider registers at once, or after Delay.
type Provider struct {
	Delay atomic.Int64 // nanoseconds that a registration sleeps
	Bytes atomic.Int64 // registered in all
	last  atomic.Uint64
}

// Name returns "noop".
func (p *Provider) Name() string { return "noop" }

// Register returns a new handle.
func (p *Provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if d := p.Delay.Load(); d != 0 {
		time.Sleep(time.Duration(d))
	}
	p.Bytes.Add(int64(r.Len()))
	h := p.last.Add(1)
	// The top bit of RKey is 0: benchmarks make their next address depend on it.
	return verbs.Region{Range: r, Access: a, LKey: uint32(h), RKey: uint32(h) >> 1, Handle: h}, nil
}

// Deregister does nothing.
func (p *Provider) Deregister(verbs.Region) error { return nil }

// Limits returns none.
func (p *Provider) Limits() verbs.Limits {
	return verbs.Limits{MaxRegions: mem.Unlimited, MaxRegionBytes: mem.Unlimited, MaxPinnedBytes: mem.Unlimited}
}

// Close does nothing.
func (p *Provider) Close() error { return nil }
