package helper

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// PlacerOptions say which helper a Placer places, and how.
type PlacerOptions struct {
	Policy  IdlePolicy
	Bytes   func() int64    // registered memory of the process now
	CommCPU func() int      // where the communication thread runs, or AnyCPU
	Apply   func(Placement) // called at every change, from one goroutine: Thread.Place
	Warn    func(error)     // called once if helpers can't be coordinated; nil: ignored

	// For tests; the zero values mean this machine.
	Root      fs.FS         // root directory with sys and proc
	ClaimsDir string        // directory of the table of helpers
	Allowed   []int         // processors that the helper may use
	Interval  time.Duration // between two looks at the machine
}

func (o *PlacerOptions) ensureDefaults() error {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.ClaimsDir == "" {
		o.ClaimsDir = claimsDir
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Allowed != nil {
		return nil
	}
	var err error
	o.Allowed, err = AllowedCPUs()
	return err
}

// Placer finds an idle core for one helper and follows the load of the
// machine: once a second it looks at /proc/stat and at the table that the
// helpers of this node share, and moves, parks or wakes its helper. One busy
// second parks nobody; see parkAfter.
//
// Until the first interval has passed the load is unknown, and the helper runs
// unplaced. If the table can't be used, the Placer considers the load alone.
type Placer struct {
	opt              PlacerOptions
	topology         *Topology
	claims           *claimTable
	self             Claim
	times            map[int]cpuTimes
	last             Placement
	looksWithoutCore int // in a row

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// StartPlacer starts a goroutine that places a helper until Close. It fails if
// the machine's topology, load or affinity can't be read.
func StartPlacer(o PlacerOptions) (*Placer, error) {
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	topology, err := ReadTopology(o.Root)
	if err != nil {
		return nil, err
	}
	owner, err := newOwner()
	if err != nil {
		return nil, fmt.Errorf("helper: start time of this process: %w", err)
	}
	p := &Placer{
		opt:      o,
		topology: topology,
		claims:   newClaimTable(o.ClaimsDir),
		self:     Claim{Owner: owner, CPU: AnyCPU},
		last:     Placement{CPU: AnyCPU, Helpers: 1},
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	if p.times, err = readCPUTimes(o.Root); err != nil {
		return nil, err
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
	ticks := time.NewTicker(p.opt.Interval)
	defer ticks.Stop()
	for {
		select {
		case <-p.stop:
			p.withdraw()
			return
		case <-ticks.C:
			p.place()
		}
	}
}

// place looks at the machine once and tells the helper if something changes.
func (p *Placer) place() {
	times, err := readCPUTimes(p.opt.Root)
	if err != nil {
		p.warn(err)
		return
	}
	v := view{
		topology: p.topology,
		allowed:  p.opt.Allowed,
		load:     loads(p.times, times),
		commCPU:  p.opt.CommCPU(),
		self:     p.self,
	}
	p.times = times
	v.self.Bytes = p.opt.Bytes()
	err = p.claims.update(func(all []Claim) []Claim { return p.chooseAmong(&v, all) })
	if err != nil {
		p.warn(err)
		p.chooseAmong(&v, nil)
	}
	if p.looksWithoutCore++; p.self.CPU != AnyCPU {
		p.looksWithoutCore = 0
	} else if p.looksWithoutCore < parkAfter {
		return
	}
	next := Placement{CPU: p.self.CPU, Parked: p.self.CPU == AnyCPU, Helpers: 1 + v.helpersOn(p.self.CPU)}
	if next != p.last {
		p.last = next
		p.opt.Apply(next)
	}
}

// parkAfter is the number of looks in a row that must find no core before the
// helper parks; until then it stays where it is. Parking makes the registration
// of everything that is deregistered at that moment late, which costs more than a
// helper takes from others in a busy second or two.
const parkAfter = 3

// chooseAmong makes this process's choice among all claims and returns the new ones.
func (p *Placer) chooseAmong(v *view, all []Claim) []Claim {
	v.others = slices.Clone(all)
	if i := slices.IndexFunc(v.others, func(c Claim) bool { return c.Owner == p.self.Owner }); i >= 0 {
		v.self.CPU = v.others[i].CPU // a bigger process may have taken the core
		v.others = slices.Delete(v.others, i, i+1)
	}
	self, loser := v.choose(p.opt.Policy)
	if loser >= 0 {
		v.others[loser].CPU = AnyCPU
	}
	p.self = self
	return append(slices.Clone(v.others), self)
}

// withdraw removes this process from the table. If that fails, the next process
// that uses the table sees that the owner is gone.
func (p *Placer) withdraw() {
	_ = p.claims.update(func(all []Claim) []Claim {
		return slices.DeleteFunc(all, func(c Claim) bool { return c.Owner == p.self.Owner })
	})
}

func (p *Placer) warn(err error) {
	if p.opt.Warn != nil {
		p.opt.Warn(fmt.Errorf("%w; placing the helper by processor load alone", err))
		p.opt.Warn = nil
	}
}
