//go:build linux && cgo

package rdma

import (
	"errors"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/internal/handle"
	"pinwheel/verbs/rdma/internal/ibv"
)

// Provider registers memory in one protection domain of a device. Make one
// with Open or Device.NewProvider.
type Provider struct {
	dev     *Device
	ownsDev bool // from Open: Close closes the device too
	pd      *ibv.PD
	lim     verbs.Limits

	regions handle.Table[registration]
	count   atomic.Int64
	pinned  atomic.Int64 // bytes, as the kernel adds them to VmPin

	released bool // closed, and the protection domain is gone; Close has it to itself
}

var _ interface {
	verbs.Provider
	verbs.Accountant
} = (*Provider)(nil)

// registration is what the provider keeps of a region.
type registration struct {
	mr     interface{ Dereg() error } // *ibv.MR
	pinned int64                      // bytes
}

// Open opens a device and a protection domain on it; Close closes both.
func Open(o Options) (*Provider, error) {
	d, err := OpenDevice(o.Device)
	if err != nil {
		return nil, err
	}
	p, err := d.NewProvider()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	p.ownsDev = true
	return p, nil
}

// NewProvider makes a protection domain. It must be closed before the device.
func (d *Device) NewProvider() (*Provider, error) {
	const op = "ibv_alloc_pd"
	if !d.retain() {
		return nil, &verbs.Error{Op: op, Kind: verbs.ErrClosed}
	}
	pd, err := d.ctx.AllocPD()
	if err != nil {
		d.release()
		return nil, verbs.Fail(op, mem.Range{}, errnoOf(err))
	}
	return &Provider{dev: d, pd: pd, lim: d.limits()}, nil
}

// Name returns "rdma".
func (p *Provider) Name() string { return "rdma" }

// Device returns the device that the regions are registered with.
func (p *Provider) Device() *Device { return p.dev }

// Verbs returns the protection domain, for package rc.
func (p *Provider) Verbs() *ibv.PD { return p.pd }

// Limits returns the device's and the process's bounds of when the provider
// was made. The device shares MaxRegions among all processes.
func (p *Provider) Limits() verbs.Limits { return p.lim }

// Usage returns what is registered now.
func (p *Provider) Usage() verbs.Usage {
	return verbs.Usage{Regions: p.count.Load(), PinnedBytes: p.pinned.Load()}
}

// Register pins the pages of r and gives them to the device (ibv_reg_mr(3)).
// AccessRelaxedOrdering is a permission that older kernels and libraries
// ignore; any other access that the device can't grant is an error.
func (p *Provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	return p.register(r, a, mem.Range.PageAligned)
}

// RegisterExact is Register for the bytes of r and no others: its pages are pinned, but a
// peer reaches no byte before or after r. It is for memory that is given to a peer.
func (p *Provider) RegisterExact(r mem.Range, a verbs.Access) (verbs.Region, error) {
	return p.register(r, a, func(r mem.Range) mem.Range { return r })
}

// register gives the device what reach makes of r.
func (p *Provider) register(r mem.Range, a verbs.Access, reach func(mem.Range) mem.Range) (verbs.Region, error) {
	const op = "ibv_reg_mr"
	aligned, err := verbs.Pinnable(op, r, a)
	pinned := int64(aligned.Len())
	if a&verbs.AccessOnDemand != 0 {
		aligned, err = verbs.WholePages(op, r)
		pinned = 0
	}
	if err != nil {
		return verbs.Region{}, err
	}
	n := aligned.Len()
	if n > uint64(p.lim.MaxRegionBytes) {
		return verbs.Region{}, &verbs.Error{Op: op, Range: aligned, Kind: verbs.ErrRegionSize}
	}
	if err := p.regions.Enter(op, aligned); err != nil {
		return verbs.Region{}, err
	}
	defer p.regions.Leave()
	r = reach(r)
	mr, err := p.pd.RegMR(uintptr(r.Start), r.Len(), uint32(a))
	if err != nil {
		return verbs.Region{}, p.failure(op, aligned, errnoOf(err))
	}
	p.count.Add(1)
	p.pinned.Add(pinned)
	lkey, rkey := mr.Keys()
	handle := p.regions.Put(registration{mr, pinned})
	return verbs.Region{Range: r, Access: a, LKey: lkey, RKey: rkey, Handle: handle}, nil
}

// Deregister unpins a region (ibv_dereg_mr(3)): from its return on, a request
// with one of its keys fails. If the device refuses, the region stays
// registered until another Deregister succeeds, or until Close.
func (p *Provider) Deregister(g verbs.Region) error {
	return p.regions.Deregister("ibv_dereg_mr", g, func(held registration) error { return p.release(held, g.Range) })
}

func (p *Provider) release(held registration, r mem.Range) error {
	if err := held.mr.Dereg(); err != nil {
		return verbs.Fail("ibv_dereg_mr", r, errnoOf(err))
	}
	p.count.Add(-1)
	p.pinned.Add(-held.pinned)
	return nil
}

// Close deregisters what is still registered and removes the protection
// domain. While connections made with it are open the latter fails with
// verbs.ErrBusy; Close may be called again when they are closed.
func (p *Provider) Close() error { return p.regions.Close(p.close) }

func (p *Provider) close() error {
	if p.released {
		return nil
	}
	var errs []error
	for h, held := range p.regions.All() {
		if err := p.release(held, mem.Range{}); err != nil {
			errs = append(errs, err)
			continue
		}
		p.regions.Remove(h)
	}
	if err := p.pd.Dealloc(); err != nil {
		return errors.Join(append(errs, verbs.Fail("ibv_dealloc_pd", mem.Range{}, errnoOf(err)))...)
	}
	p.released = true
	p.dev.release()
	if p.ownsDev {
		errs = append(errs, p.dev.Close())
	}
	return errors.Join(errs...)
}
