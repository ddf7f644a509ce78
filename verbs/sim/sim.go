package sim

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/internal/handle"
)

// Op is a call to the provider.
type Op uint8

const (
	OpRegister Op = iota
	OpDeregister
)

func (o Op) String() string {
	if o == OpDeregister {
		return "deregister"
	}
	return "register"
}

// call names the operation in errors.
func (o Op) call() string { return "sim " + o.String() }

// Options configure a Provider. The zero value registers everything at no cost.
type Options struct {
	// Limits to enforce; a field that is 0 stands for mem.Unlimited.
	Limits verbs.Limits
	// Costs of a call, as modelled; see verbs/calibrate for measured ones.
	Costs verbs.Costs
	// Wait makes every call take its modelled cost and delay. It sleeps through most
	// of that time, and spins through the rest.
	Wait bool
	// Fail, if set, is asked once at the start of every call, after its
	// arguments were checked; an error makes the call fail and change nothing.
	// A syscall.Errno, or a sentinel of package verbs, is wrapped in a
	// *verbs.Error; any other error is returned as it is. It may block, and is
	// called from many goroutines at once. See Failures.
	Fail func(op Op, r mem.Range) error
	// Delay, if set, is asked before Fail, once for every call, and adds to the
	// cost of the call if it succeeds.
	Delay func(op Op, r mem.Range) time.Duration
}

// EnsureDefaults replaces zeros by the defaults.
func (o *Options) EnsureDefaults() {
	o.Limits.MaxRegions = cmp.Or(o.Limits.MaxRegions, mem.Unlimited)
	o.Limits.MaxRegionBytes = cmp.Or(o.Limits.MaxRegionBytes, mem.Unlimited)
	o.Limits.MaxPinnedBytes = cmp.Or(o.Limits.MaxPinnedBytes, mem.Unlimited)
	o.Limits.PinnedSource = cmp.Or(o.Limits.PinnedSource, "simulation")
}

// Stats counts what a Provider did since New.
type Stats struct {
	verbs.Usage
	PeakPinnedBytes int64
	PeakRegions     int64
	Registers       uint64 // that succeeded
	Deregisters     uint64 // that succeeded
	Failed          uint64 // calls that failed, for whatever reason
	UnknownRegions  uint64 // Deregister of something not registered: a caller's bug
	RegisterNs      int64  // modelled duration of all registrations, delays included
	DeregisterNs    int64
}

// Provider is a simulated device. Make one with New.
type Provider struct {
	opts    Options
	regions handle.Table[verbs.Region]

	// mu is a leaf lock. It is never held while a call waits.
	mu    sync.Mutex
	stats Stats
}

var _ interface {
	verbs.Provider
	verbs.Accountant
} = (*Provider)(nil)

// New returns a provider; it cannot fail.
func New(o Options) *Provider {
	o.EnsureDefaults()
	return &Provider{opts: o}
}

// Name returns "sim".
func (p *Provider) Name() string { return "sim" }

// Limits returns those of the Options.
func (p *Provider) Limits() verbs.Limits { return p.opts.Limits }

// Register counts the pages of r as pinned.
func (p *Provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	reg, err := p.register(r, a)
	p.count(OpRegister, err)
	return reg, err
}

func (p *Provider) register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := p.regions.Enter(OpRegister.call(), r); err != nil {
		return verbs.Region{}, err
	}
	defer p.regions.Leave()
	aligned, err := verbs.WholePages(OpRegister.call(), r)
	if err != nil {
		return verbs.Region{}, err
	}
	delay, err := p.inject(OpRegister, aligned)
	if err != nil {
		return verbs.Region{}, err
	}
	if err := p.charge(aligned); err != nil {
		return verbs.Region{}, err
	}
	p.spend(OpRegister, aligned, delay)
	reg := verbs.Region{Range: aligned, Access: a}
	return withHandle(reg, p.regions.Put(reg)), nil
}

// charge reserves room for r before the time of the registration passes, as
// the kernel does, so that two registrations can't both take the last page.
func (p *Provider) charge(r mem.Range) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, lim := int64(r.Len()), &p.opts.Limits
	switch {
	case n < 0 || n > lim.MaxRegionBytes:
		return refuse(OpRegister, r, verbs.ErrRegionSize, syscall.EINVAL)
	case p.stats.Regions >= lim.MaxRegions:
		return refuse(OpRegister, r, verbs.ErrRegions, syscall.ENOSPC)
	case n > lim.MaxPinnedBytes-p.stats.PinnedBytes:
		return refuse(OpRegister, r, verbs.ErrPinnedMemory, syscall.ENOMEM)
	}
	p.stats.Regions++
	p.stats.PinnedBytes += n
	p.stats.PeakRegions = max(p.stats.PeakRegions, p.stats.Regions)
	p.stats.PeakPinnedBytes = max(p.stats.PeakPinnedBytes, p.stats.PinnedBytes)
	return nil
}

// Deregister forgets a region, once its modelled time has passed.
func (p *Provider) Deregister(reg verbs.Region) error {
	err := p.regions.Deregister(OpDeregister.call(), reg, p.deregister)
	p.count(OpDeregister, err)
	return err
}

func (p *Provider) deregister(held verbs.Region) error {
	delay, err := p.inject(OpDeregister, held.Range)
	if err != nil {
		return err
	}
	p.spend(OpDeregister, held.Range, delay)
	p.mu.Lock()
	p.stats.Regions--
	p.stats.PinnedBytes -= int64(held.Range.Len())
	p.mu.Unlock()
	return nil
}

// inject asks Options.Delay and Options.Fail.
func (p *Provider) inject(op Op, r mem.Range) (delay time.Duration, err error) {
	if p.opts.Delay != nil {
		delay = p.opts.Delay(op, r)
	}
	if p.opts.Fail == nil {
		return delay, nil
	}
	err = p.opts.Fail(op, r)
	var errno syscall.Errno
	switch typed := (*verbs.Error)(nil); {
	case errors.As(err, &typed):
	case errors.As(err, &errno):
		err = refuse(op, r, verbs.Kind(errno), errno)
	case slices.Contains(sentinels, err):
		err = refuse(op, r, err, 0)
	}
	return delay, err
}

var sentinels = []error{verbs.ErrPinnedMemory, verbs.ErrRegions, verbs.ErrNotMapped, verbs.ErrNotPermitted,
	verbs.ErrUnsupported, verbs.ErrBusy, verbs.ErrRegionSize, verbs.ErrSystem}

// spend adds the duration of a call to the Stats, and waits for it if Options.Wait is set.
func (p *Provider) spend(op Op, r mem.Range, delay time.Duration) {
	cost, total := p.opts.Costs.Register, &p.stats.RegisterNs
	if op == OpDeregister {
		cost, total = p.opts.Costs.Deregister, &p.stats.DeregisterNs
	}
	ns := cost.Ns(r.Pages()) + int64(delay)
	if ns == 0 {
		return
	}
	p.mu.Lock()
	*total += ns
	p.mu.Unlock()
	if p.opts.Wait {
		wait(time.Duration(ns))
	}
}

// count notes the outcome of a call.
func (p *Provider) count(op Op, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, verbs.ErrUnknownRegion):
		p.stats.UnknownRegions++
		p.stats.Failed++
	case err != nil:
		p.stats.Failed++
	case op == OpRegister:
		p.stats.Registers++
	default:
		p.stats.Deregisters++
	}
}

// Usage returns the size of the present registrations.
func (p *Provider) Usage() verbs.Usage { return p.Stats().Usage }

// Stats returns the counts at this moment.
func (p *Provider) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Regions returns what is registered now, or was when the provider was
// closed, in no particular order.
func (p *Provider) Regions() []verbs.Region {
	var all []verbs.Region
	for h, reg := range p.regions.All() {
		all = append(all, withHandle(reg, h))
	}
	return all
}

func withHandle(reg verbs.Region, h uint64) verbs.Region {
	reg.Handle, reg.LKey, reg.RKey = h, uint32(h), uint32(h)
	return reg
}

// Close forgets every region.
func (p *Provider) Close() error {
	return p.regions.Close(func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats.Usage = verbs.Usage{}
		return nil
	})
}

func refuse(op Op, r mem.Range, kind error, errno syscall.Errno) error {
	return &verbs.Error{Op: op.call(), Range: r, Kind: kind, Errno: errno}
}

// spinBelow is the rest of a wait that is spun through: time.Sleep overshoots
// by 50 us to 1 ms, depending on timer slack and load.
const spinBelow = 100 * time.Microsecond

// wait returns d later. Registering keeps a processor busy, so the end of the
// wait does as well.
func wait(d time.Duration) {
	end := time.Now().Add(d)
	if d > spinBelow {
		time.Sleep(d - spinBelow)
	}
	for time.Now().Before(end) {
	}
}
