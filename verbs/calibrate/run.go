package calibrate

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"pinwheel/internal/machine"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// Options of a measurement. The zero value is the default: some 3 s.
type Options struct {
	// MaxPages is the largest size, in pages of mem.PageSize. Default: 32,768
	// (128 MiB), or an eighth of what the provider may pin, if that is less.
	MaxPages uint64
	// Rounds is how often every size is measured; never-touched memory, which
	// takes much longer, a third as often. Default: 99.
	Rounds int
	// BetweenBytes is how much memory is written before each operation, as a program does that computes between two
	// uses of a buffer. The kernel's data on the pages is then no longer in the processor's caches. Default: 0.
	BetweenBytes uint64
	// Beside is how many threads write memory all the while, BetweenBytes each, as the other ranks of a node do: its
	// processors share the way to memory. Default: 0.
	Beside int

	between computation
}

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults(l verbs.Limits) {
	if o.MaxPages == 0 {
		o.MaxPages = 1 << 15
	}
	o.MaxPages = min(o.MaxPages, max(uint64(min(l.MaxPinnedBytes/8, l.MaxRegionBytes))/mem.PageSize, 2))
	if o.Rounds <= 0 {
		o.Rounds = 99
	}
}

// memoryKind is a kind of memory, in the order of the fields of Calibration.
type memoryKind uint8

const (
	touched memoryKind = iota
	untouched
	huge
)

// Run calibrates p, which should have nothing else to do, and no more than a
// few regions registered. It needs memory for the ladder, twice its largest size.
func Run(p verbs.Provider, o Options) (*Calibration, error) {
	o.EnsureDefaults(p.Limits())
	this := machine.This()
	c := &Calibration{Format: format, Version: Version, Provider: p.Name(), Source: "measured",
		Machine: fmt.Sprintf("%s, %d CPUs, %d GiB", this.Processor, this.Processors, this.MemoryBytes>>30),
		Kernel:  this.Kernel, Date: time.Now().UTC().Format(time.DateOnly), PageBytes: mem.PageSize,
		BetweenBytes: o.BetweenBytes, Beside: o.Beside}
	o.between = make(computation, o.BetweenBytes)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if o.Beside < 0 || o.Beside > 0 && o.BetweenBytes == 0 {
		return nil, fmt.Errorf("calibration: Beside is %d: it must not be negative, and needs BetweenBytes", o.Beside)
	}
	defer startNeighbours(o.Beside, o.BetweenBytes).stop()

	pair, err := measure(p, o, touched)
	if err != nil {
		return nil, err
	}
	c.Touched = *pair
	if c.Untouched, err = measure(p, o, untouched); err != nil {
		return nil, err
	}
	if o.MaxPages*mem.PageSize >= 4*hugeBytes {
		if c.Huge, err = measure(p, o, huge); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// rung is one size of the ladder with its durations.
type rung struct {
	pages                    uint64
	memory                   memory // kept, except for untouched memory
	registerNs, deregisterNs []float64
}

// measure fits both operations on one kind of memory; nil if there are no
// huge pages to be had.
func measure(p verbs.Provider, o Options, k memoryKind) (*Pair, error) {
	smallest := uint64(1)
	if k == huge {
		smallest = hugeBytes / mem.PageSize
	}
	var ladder []*rung
	defer func() {
		for _, r := range ladder {
			r.memory.unmap()
		}
	}()
	for n := smallest; n <= o.MaxPages; n *= 2 {
		m, err := mapMemory(n*mem.PageSize, k == huge)
		if err != nil {
			return nil, err
		}
		ladder = append(ladder, &rung{pages: n, memory: m})
		if k != untouched {
			m.touch()
		}
	}
	if k == huge && !isHuge(2*o.MaxPages*mem.PageSize-hugeBytes) {
		return nil, nil
	}
	timerNs := timerCost()
	rounds := o.Rounds
	if k == untouched {
		rounds = max(rounds/3, 1)
	}
	order := rand.New(rand.NewPCG(1, 1))
	for range rounds {
		for _, i := range order.Perm(len(ladder)) {
			if err := ladder[i].measure(p, k, timerNs, o.between); err != nil {
				return nil, err
			}
		}
	}
	return fitLadder(ladder)
}

// fitLadder fits both operations to the samples of all sizes.
func fitLadder(ladder []*rung) (*Pair, error) {
	var registers, deregisters []Point
	for _, r := range ladder {
		registers = append(registers, newPoint(r.pages, r.registerNs))
		deregisters = append(deregisters, newPoint(r.pages, r.deregisterNs))
	}
	register, err := fit(registers)
	if err != nil {
		return nil, err
	}
	deregister, err := fit(deregisters)
	if err != nil {
		return nil, err
	}
	return &Pair{Register: register, Deregister: deregister}, nil
}

// measure takes the samples of one round: one of each operation, after other
// sizes have been through the processor's caches.
func (r *rung) measure(p verbs.Provider, k memoryKind, timerNs float64, c computation) error {
	if k == untouched {
		r.memory.unmap()
		var err error
		if r.memory, err = mapMemory(r.pages*mem.PageSize, false); err != nil {
			return err
		}
	}
	return r.sample(p, nowNs, timerNs, c)
}

// sample registers and deregisters the memory once. timerNs is the cost of a reading of the clock.
func (r *rung) sample(p verbs.Provider, nowNs func() int64, timerNs float64, c computation) error {
	c.run()
	startNs := nowNs()
	region, err := p.Register(r.memory.rng, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	endNs := nowNs()
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	r.registerNs = append(r.registerNs, max(float64(endNs-startNs)-timerNs, 1))
	c.run()
	startNs = nowNs()
	err = p.Deregister(region)
	endNs = nowNs()
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	r.deregisterNs = append(r.deregisterNs, max(float64(endNs-startNs)-timerNs, 1))
	return nil
}

var clockBase = time.Now()

// nowNs reads the kernel's clock: that of package clock is off by some ppm.
func nowNs() int64 { return int64(time.Since(clockBase)) }

// timerCost returns the median of what an empty measurement shows, in ns.
func timerCost() float64 {
	ns := make([]float64, 1001)
	for i := range ns {
		startNs := nowNs()
		ns[i] = float64(nowNs() - startNs)
	}
	return newPoint(0, ns).MedianNs
}
