package uring

import (
	"errors"
	"runtime"
	"sync"
	"syscall"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/internal/handle"
	"pinwheel/verbs/memlock"
)

const (
	// Slots is what all tables of a provider hold together. (One table could hold
	// as many: IORING_MAX_REG_BUFFERS.)
	Slots = 1 << 14
	// tableSlots is the size of one table. To count a huge page the kernel walks
	// its ring's whole table, empty slots included: with 16,384 slots that
	// makes a 16 KiB registration last 17 us instead of 1.8.
	tableSlots = 1 << 10
)

// Options configure a Provider. The zero value is the default.
type Options struct {
	// Rings is the number of registrations that may run at one time; more rings
	// than these are opened only when their tables are full. Default: as many
	// as the program has processors, at least 2, at most 8.
	Rings int
	// Slots is the number of slots in all. Above 1,024 it is rounded up to a
	// multiple of that. Default, and most: 16,384.
	Slots int
}

// EnsureDefaults fills in what is unset and brings the rest into bounds.
func (o *Options) EnsureDefaults() {
	if o.Rings <= 0 {
		o.Rings = min(max(runtime.GOMAXPROCS(0), 2), 8)
	}
	if o.Slots <= 0 || o.Slots > Slots {
		o.Slots = Slots
	}
	if o.Slots > tableSlots {
		o.Slots = (o.Slots + tableSlots - 1) &^ (tableSlots - 1)
	}
	o.Rings = min(o.Rings, o.maxRings())
}

// maxRings is the number of rings whose tables make up o.Slots.
func (o *Options) maxRings() int { return max(o.Slots/tableSlots, 1) }

// table is the number of slots of one ring.
func (o *Options) table() int { return min(o.Slots, tableSlots) }

// registration is what a handle stands for.
type registration struct {
	ring  *ring
	rng   mem.Range
	slots slots
}

// Provider registers memory with io_uring. Make one with Open.
type Provider struct {
	opts    Options
	limits  verbs.Limits
	regions handle.Table[registration]

	registered, pinnedBytes atomic.Int64

	// rings holds the opened rings: appended to under growing, never removed
	// from before Close, and read without a lock.
	rings atomic.Pointer[[]*ring]
	// growing lets one goroutine at a time open a ring. Taken during a call.
	growing sync.Mutex
	turn    atomic.Uint32 // whose ring to wait for when all are busy
}

var _ interface {
	verbs.Provider
	verbs.Accountant
} = (*Provider)(nil)

// Open returns a provider with its first ring. It fails with ErrNotPermitted
// or ErrUnsupported where io_uring is forbidden or too old, or, if nothing of
// the memory limit is left, with ErrPinnedMemory.
func Open(o Options) (*Provider, error) {
	o.EnsureDefaults()
	first, err := newRing(uint32(o.table()))
	if err != nil {
		return nil, explain(err)
	}
	p := &Provider{opts: o}
	p.limits = verbs.Limits{MaxRegions: int64(o.Slots), MaxRegionBytes: int64(o.table()) * maxRegisteredBufferSize}
	p.limits.MaxPinnedBytes, p.limits.PinnedSource = memlock.Limit()
	p.rings.Store(&[]*ring{first})
	return p, nil
}

// Name returns "uring".
func (p *Provider) Name() string { return "uring" }

// Limits returns the limits as they were at Open. A region beyond 1 GiB takes
// one of MaxRegions for every started GiB.
func (p *Provider) Limits() verbs.Limits { return p.limits }

// Usage returns what is registered now; see the package comment for huge pages.
func (p *Provider) Usage() verbs.Usage {
	return verbs.Usage{Regions: p.registered.Load(), PinnedBytes: p.pinnedBytes.Load()}
}

// Register pins the pages of r: one system call for every started GiB.
// Registrations in other goroutines do not delay it, as long as fewer than
// Options.Rings are under way. On-demand access is not supported.
func (p *Provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := p.regions.Enter(opRegister, r); err != nil {
		return verbs.Region{}, err
	}
	defer p.regions.Leave()
	rng, err := verbs.Pinnable(opRegister, r, a)
	if err != nil {
		return verbs.Region{}, err
	}
	if rng.Len() > uint64(p.limits.MaxRegionBytes) {
		return verbs.Region{}, &verbs.Error{Op: opRegister, Range: r, Kind: verbs.ErrRegionSize}
	}
	ring, err := p.lockRing(slotsFor(rng.Len()))
	if err != nil {
		return verbs.Region{}, &verbs.Error{Op: opRegister, Range: r, Kind: err}
	}
	s, err := ring.pin(rng)
	ring.mu.Unlock()
	if err != nil {
		return verbs.Region{}, err
	}
	p.registered.Add(1)
	p.pinnedBytes.Add(int64(rng.Len()))
	return verbs.Region{
		Range:  rng,
		Access: a,
		LKey:   uint32(s.first),
		RKey:   uint32(s.first),
		Handle: p.regions.Put(registration{ring: ring, rng: rng, slots: s}),
	}, nil
}

// Deregister unpins a region: one system call for every started GiB. It waits
// for a registration under way on the ring that holds the region.
func (p *Provider) Deregister(g verbs.Region) error {
	return p.regions.Deregister(opClear, g, func(reg registration) error {
		reg.ring.mu.Lock()
		errno := reg.ring.unpin(reg.slots)
		reg.ring.mu.Unlock()
		if errno != 0 { // kernels before 6.4 allocate memory for it
			return verbs.Fail(opClear, reg.rng, errno)
		}
		p.registered.Add(-1)
		p.pinnedBytes.Add(-int64(reg.rng.Len()))
		return nil
	})
}

// lockRing returns a ring with need empty slots, its mu held: the first that
// is not busy, else a new one, else the one whose turn it is. Taking the first
// keeps few rings in use, so that the kernel counts a huge page in few places.
func (p *Provider) lockRing(need int) (*ring, error) {
	for {
		rings := *p.rings.Load()
		for _, r := range rings {
			if r.mu.TryLock() {
				if len(r.free) >= need {
					return r, nil
				}
				r.mu.Unlock()
			}
		}
		if len(rings) < p.opts.Rings {
			// Failing to grow is no reason to fail what only has to wait.
			if r, err := p.grow(len(rings)); err == nil && r != nil {
				return r, nil
			}
		}
		for first, i := int(p.turn.Add(1)), 0; i < len(rings); i++ {
			r := rings[(first+i)%len(rings)]
			r.mu.Lock()
			if len(r.free) >= need {
				return r, nil
			}
			r.mu.Unlock()
		}
		if r, err := p.grow(len(rings)); r != nil || err != nil {
			return r, err
		}
	}
}

// grow opens a ring and returns it, its mu held; nil if others opened one
// since the caller counted them.
func (p *Provider) grow(seen int) (*ring, error) {
	p.growing.Lock()
	defer p.growing.Unlock()
	rings := *p.rings.Load()
	if len(rings) > seen {
		return nil, nil
	}
	if len(rings) == p.opts.maxRings() {
		return nil, verbs.ErrRegions
	}
	r, err := newRing(uint32(p.opts.table()))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	grown := append(rings[:len(rings):len(rings)], r)
	p.rings.Store(&grown)
	return r, nil
}

// Close unpins every region and closes the rings. When it returns, VmPin no
// longer counts anything of this provider.
func (p *Provider) Close() error {
	return p.regions.Close(func() error {
		var errs []error
		for _, r := range *p.rings.Swap(&[]*ring{}) {
			errs = append(errs, r.close())
		}
		p.registered.Store(0)
		p.pinnedBytes.Store(0)
		return errors.Join(errs...)
	})
}

// errnoOf returns the errno in err, or 0.
func errnoOf(err error) (errno syscall.Errno) {
	errors.As(err, &errno)
	return errno
}
