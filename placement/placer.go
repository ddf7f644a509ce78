package placement

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/cgroup"
	"pinwheel/internal/node"
)

// PlacerOptions say which helper a Placer places, and how.
type PlacerOptions struct {
	Policy  IdlePolicy
	Share   bool                   // under Auto the helper may run on the core of its rank; else that is Conservative
	Bytes   func() int64           // registered memory of the process now
	CommCPU func() int             // where the communication thread runs, or AnyCPU
	Apply   func(helper.Placement) // called at every change, by StartPlacer and then from one goroutine: Thread.Place
	Warn    func(error)            // called once if helpers can't be coordinated; nil: ignored

	// Node is this process among those of its job, which agree on the cores of their helpers.
	// nil: the Placer considers the load alone.
	Node *node.Member

	// For tests; the zero values mean this machine.
	Root     fs.FS         // root directory with sys and proc
	Allowed  []int         // processors that the helper may use; nil: as AllowedCPUs says
	Interval time.Duration // between two looks at the machine

	allowedCPUs func() ([]int, error) // another AllowedCPUs
}

func (o *PlacerOptions) ensureDefaults() {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.allowedCPUs == nil {
		o.allowedCPUs = AllowedCPUs
	}
	if o.Allowed != nil {
		o.allowedCPUs = func() ([]int, error) { return o.Allowed, nil }
	}
}

// Placer finds a core for one helper and follows the load of the
// machine: once a second it looks at /proc/stat, at what the quotas of its control groups
// leave, and at the table that the helpers of its job share on this node, and moves, parks or
// wakes its helper. One busy second parks nobody; see parkAfter.
//
// Until the first look, after a tenth of the interval, the load is unknown, and the helper runs
// unplaced; under Auto with Share, as if on the core of its rank. If the table can't be used, the Placer considers the
// load alone.
type Placer struct {
	opt     PlacerOptions
	chooser *Chooser
	quota   *cgroup.CPUQuota
	claims  claimTable
	times   map[int]cpuTimes
	allowed []int // processors
	cpuset  []int // of this process, when allowed was asked for
	looks   int
	busy    int // looks in a row that did not get the table of claims

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// StartPlacer starts a goroutine that places a helper until Close. It fails if
// the machine's topology, load or affinity can't be read.
func StartPlacer(o PlacerOptions) (*Placer, error) {
	o.ensureDefaults()
	topology, err := ReadTopology(o.Root)
	if err != nil {
		return nil, err
	}
	p := &Placer{
		opt:     o,
		chooser: NewChooser(o.Policy, topology, nil, claimTable{o.Node}.owner()),
		quota:   cgroup.NewCPUQuota(o.Root),
		claims:  claimTable{o.Node},
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if p.times, err = readCPUTimes(o.Root); err != nil {
		return nil, err
	}
	if p.allowed, err = o.allowedCPUs(); err != nil {
		return nil, err
	}
	p.cpuset, _ = cgroup.CPUSet(o.Root)
	p.quota.Left(time.Now()) // the first interval begins
	if o.Share {
		if first := p.chooser.ShareWithRank(); first.Shared {
			o.Apply(first)
		}
	}
	go p.run()
	return p, nil
}

// Close stops placing and withdraws the claim. It may be called more than
// once. The helper itself is not touched.
func (p *Placer) Close() error {
	p.once.Do(func() { close(p.stop) })
	<-p.done
	return nil
}

func (p *Placer) run() {
	defer close(p.done)
	ticks := time.NewTicker(p.opt.Interval / earlier)
	defer ticks.Stop()
	for {
		select {
		case <-p.stop:
			p.withdraw()
			return
		case <-ticks.C:
			p.place()
			ticks.Reset(p.opt.Interval)
		}
	}
}

// earlier is how much earlier the first look comes than the next ones: short programs, too, should have the
// idle core that there is.
const earlier = 10

// place looks at the machine once and tells the helper if something changes.
func (p *Placer) place() {
	times, err := readCPUTimes(p.opt.Root)
	if err != nil {
		p.warn(err)
		return
	}
	if p.looks++; p.looks%cpusetLooks == 0 {
		p.followCPUSet()
	}
	p.chooser.Limit(present(p.allowed, times), p.quota.Left(time.Now()))
	l := Look{Load: loads(p.times, times), CommCPU: p.opt.CommCPU(), Bytes: p.opt.Bytes()}
	p.times = times
	var all []Claim
	err = p.claims.update(func(claims []Claim) []Claim {
		all = p.chooser.Choose(l, claims)
		return all
	})
	if errors.Is(err, node.ErrBusy) {
		p.busy++
	} else {
		p.busy = 0
	}
	if err != nil {
		p.warn(err)
		all = p.chooser.Choose(l, nil)
	}
	if next, changed := p.chooser.Placement(all); changed {
		p.opt.Apply(next)
	}
}

// cpusetLooks is the number of looks between two looks at the cpuset.
const cpusetLooks = 10

// followCPUSet asks which processors are allowed if the cpuset has changed. Kubernetes changes the cpusets of
// running pods whenever another pod gets exclusive processors. That the affinity of a thread has changed is no reason:
// an OpenMP runtime binds each thread to one processor.
func (p *Placer) followCPUSet() {
	cpuset, _ := cgroup.CPUSet(p.opt.Root)
	if slices.Equal(cpuset, p.cpuset) {
		return
	}
	if allowed, err := p.opt.allowedCPUs(); err == nil {
		p.allowed, p.cpuset = allowed, cpuset
	}
}

// withdraw removes this process from the table. If that fails, the next process
// that uses the table sees that the owner is gone.
func (p *Placer) withdraw() {
	_ = p.claims.update(func(all []Claim) []Claim {
		return slices.DeleteFunc(all, func(c Claim) bool { return c.Owner == p.claims.owner() })
	})
}

// stoppedLooks is the number of looks after which a process that keeps the table is taken for a stopped one. On a busy
// machine it may just have had no processor for a moment.
const stoppedLooks = 10

func (p *Placer) warn(err error) {
	if p.opt.Warn != nil && (!errors.Is(err, node.ErrBusy) || p.busy >= stoppedLooks) {
		p.opt.Warn(fmt.Errorf("%w; placing the helper by processor load alone", err))
		p.opt.Warn = nil
	}
}
