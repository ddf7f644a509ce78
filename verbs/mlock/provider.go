package mlock

import (
	"fmt"
	"sync"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/internal/handle"
	"pinwheel/verbs/memlock"
)

// The calls, as errors name them.
const (
	opLock   = "mlock"
	opUnlock = "munlock"
)

// Provider registers memory with mlock(2). Make one with Open. Two Providers
// of a process would unlock each other's pages.
type Provider struct {
	limits  verbs.Limits
	regions handle.Table[mem.Range]

	// mu makes the counts agree with what is locked: a page is counted before
	// it is locked, and unlocked under mu as soon as its count is zero. So it is
	// held over munlock, which the kernel runs under the process's mmap_lock
	// anyway, but not over mlock, which faults pages in.
	mu         sync.Mutex
	counts     mem.Counts
	registered int64 // registrations in counts
}

var _ interface {
	verbs.Provider
	verbs.Accountant
} = (*Provider)(nil)

// Open returns a provider. It fails with ErrNotPermitted if this process may
// lock nothing.
func Open() (*Provider, error) {
	if err := Probe(); err != nil {
		return nil, err
	}
	p := &Provider{limits: verbs.Limits{MaxRegions: mem.Unlimited, MaxRegionBytes: mem.Unlimited}}
	p.limits.MaxPinnedBytes, p.limits.PinnedSource = memlock.Limit()
	return p, nil
}

// Probe returns nil if this process can lock memory, else one line that says why not.
func Probe() error {
	if limit, source := memlock.Limit(); limit < int64(mem.PageSize) {
		return fmt.Errorf("mlock unavailable: %s is %d bytes, less than a page: %w", source, limit,
			&verbs.Error{Op: opLock, Kind: verbs.ErrNotPermitted, Errno: syscall.EPERM})
	}
	return nil
}

// Name returns "mlock".
func (p *Provider) Name() string { return "mlock" }

// Limits returns the limits as they were at Open. The kernel may run out of
// mappings (vm.max_map_count) before; that is ErrRegions.
func (p *Provider) Limits() verbs.Limits { return p.limits }

// Usage returns the registrations and the bytes that at least one of them covers.
func (p *Provider) Usage() verbs.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return verbs.Usage{Regions: p.registered, PinnedBytes: int64(p.counts.Bytes())}
}

// Register locks the pages of r, with one system call. On-demand access is not
// supported.
func (p *Provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := p.regions.Enter(opLock, r); err != nil {
		return verbs.Region{}, err
	}
	defer p.regions.Leave()
	rng, err := verbs.Pinnable(opLock, r, a)
	if err != nil {
		return verbs.Region{}, err
	}
	p.mu.Lock()
	p.counts.Add(rng)
	p.registered++
	p.mu.Unlock()
	// All of it, though others may have locked a part: they may not be done.
	if errno := lock(rng); errno != 0 {
		kind := kindOf(errno, rng, p.limits.MaxPinnedBytes)
		_ = p.release(rng) // what was locked before the error
		return verbs.Region{}, &verbs.Error{Op: opLock, Range: rng, Kind: kind, Errno: errno}
	}
	return verbs.Region{Range: rng, Access: a, Handle: p.regions.Put(rng)}, nil
}

// Deregister unlocks the pages that no other registration covers.
func (p *Provider) Deregister(g verbs.Region) error {
	return p.regions.Deregister(opUnlock, g, func(rng mem.Range) error {
		if errno := p.release(rng); errno != 0 {
			return &verbs.Error{Op: opUnlock, Range: rng, Kind: verbs.ErrRegions, Errno: errno}
		}
		return nil
	})
}

// release takes one registration out of the counts, or fails and leaves it
// there: the kernel may be out of mappings, which a split takes two of.
func (p *Provider) release(rng mem.Range) syscall.Errno {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, unused := range p.counts.Remove(rng) {
		if errno := unlock(unused); errno != 0 {
			p.counts.Add(rng)
			return errno
		}
	}
	p.registered--
	return 0
}

// Close unlocks everything.
func (p *Provider) Close() error { return p.regions.Close(p.unlockAll) }

func (p *Provider) unlockAll() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for locked := range p.counts.All() {
		if errno := unlock(locked); errno != 0 {
			err = &verbs.Error{Op: opUnlock, Range: locked, Kind: verbs.ErrRegions, Errno: errno}
		}
	}
	p.counts, p.registered = mem.Counts{}, 0
	return err
}
