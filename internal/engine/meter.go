package engine

import (
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/usage"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// meter measures a process over time, for its report: what is pinned, what communication
// waited for, where the helper was. It is safe for concurrent use. Hits never call it.
type meter struct {
	clockNs  func() int64 // clock.NowNs but in tests
	beganNs  int64        // all times below count from here
	beganCPU int64        // processor time of the process then, in nanoseconds

	// mu protects all below. It is a leaf: taken after calls of the provider, never
	// across one.
	mu          sync.Mutex
	pinned      usage.Usage      // bytes
	parked      usage.Usage      // 1 while the helper is parked
	stalled     usage.Series     // threads that wait for a registration
	late        usage.Series     // late uses
	registerNs  int64            // in registrations and deregistrations
	byHelperNs  int64            // in those of the helper, the cache included
	firstUsesNs int64            // in those that threads of the program have made by themselves
	at          helper.Placement // the latest
	parks       int64
	firstParkNs int64
	quotaNs     int64 // that the helper had no core of its own because of a quota, until quotaFromNs
	quotaFromNs int64 // when at.QuotaUsedUp was looked at for the last time
	misses      map[predictor.CallSite]*misses
	elsewhere   misses // at call sites past maxMissSites
	stallNs     int64  // that communication waited for what was no hit
	lateNs      int64  // that communication waited for late registrations
	underWayNs  int64  // that late uses waited for registrations under way
	demand      struct {
		spentNs int64   // that uses on demand have cost
		priceNs float64 // report.Cost.PriceNs; 0 while there are none
	}
}

// misses are the uses at one call site that were no hits.
type misses struct {
	late    int64
	stallNs int64
}

// maxMissSites bounds the memory of a program whose call sites never repeat.
const maxMissSites = 4096

// newMeter begins to count now by the clock that it is given, with nothing pinned.
func newMeter(clockNs func() int64) *meter {
	const end = math.MaxInt64
	m := &meter{
		clockNs: clockNs, beganNs: clockNs(), beganCPU: processCPUNs(),
		pinned: usage.New(0, end), parked: usage.New(0, end),
		stalled: usage.NewSeries(0, end), late: usage.NewSeries(0, end),
		at:     helper.Placement{CPU: helper.AnyCPU},
		misses: map[predictor.CallSite]*misses{},
	}
	// A page fault after a registration makes userfaultfd doubt all that is registered.
	for _, s := range []*usage.Series{m.pinned.Series(), m.parked.Series(), &m.stalled, &m.late} {
		s.Touch()
	}
	return m
}

// processCPUNs returns the processor time of all threads of this process so far.
func processCPUNs() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // Linux always has it
	return ts.Nano()
}

// nowNs is the time since the meter began.
func (m *meter) nowNs() int64 { return m.clockNs() - m.beganNs }

// registered counts bytes that were pinned, or unpinned if negative, by a call that began at startNs.
func (m *meter) registered(bytes, startNs int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowNs()
	m.registerNs += now - startNs
	m.pinned.Change(now, bytes)
}

// read returns the peak and the mean of the pinned bytes until now.
func (m *meter) read() (peak, mean int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pinned.Peak(), int64(m.pinned.Mean(m.nowNs()))
}

// missed counts a use that was no hit and that took from startNs to endNs.
func (m *meter) missed(o regcache.Outcome, site predictor.CallSite, startNs, endNs int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled.Hold(startNs-m.beganNs, endNs-m.beganNs, 1)
	at := m.missesAt(site)
	at.stallNs += endNs - startNs
	m.stallNs += endNs - startNs
	switch o {
	case regcache.Late:
		m.lateNs += endNs - startNs
	case regcache.Waited:
		m.underWayNs += endNs - startNs
	}
	if o.IsLate() {
		at.late++
		m.late.Add(startNs-m.beganNs, 1)
	}
}

// missesAt returns the misses at a call site, to count there. It is called with mu.
func (m *meter) missesAt(site predictor.CallSite) *misses {
	at := m.misses[site]
	if at == nil && len(m.misses) < maxMissSites {
		at = new(misses)
		m.misses[site] = at
	}
	if at == nil {
		at = &m.elsewhere
	}
	return at
}

// place counts a placement of the helper.
func (m *meter) place(p helper.Placement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowNs()
	m.quotaNs, m.quotaFromNs = m.quotaUsedUpNs(now), now
	before := m.at
	m.at = p
	if p.Parked == before.Parked {
		return
	}
	if !p.Parked {
		m.parked.Change(now, -1)
		return
	}
	if m.parks == 0 {
		m.firstParkNs = now
	}
	m.parks++
	m.parked.Change(now, 1)
}

// quotaUsedUpNs returns quotaNs until now. It is called with mu.
func (m *meter) quotaUsedUpNs(now int64) int64 {
	if m.at.QuotaUsedUp {
		return m.quotaNs + now - m.quotaFromNs
	}
	return m.quotaNs
}

// timedRegistrar is the helper's Registrar, whose time a meter counts.
type timedRegistrar struct {
	helper.Registrar
	meter *meter
}

// Register implements helper.Registrar.
func (r timedRegistrar) Register(id mem.RegionID) error {
	defer r.meter.byHelper(r.meter.nowNs())
	return r.Registrar.Register(id)
}

// Deregister implements helper.Registrar.
func (r timedRegistrar) Deregister(id mem.RegionID) error {
	defer r.meter.byHelper(r.meter.nowNs())
	return r.Registrar.Deregister(id)
}

func (m *meter) byHelper(startNs int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byHelperNs += m.nowNs() - startNs
}

// Metered is a provider whose registrations an Engine counts as pinned.
type Metered struct {
	verbs.Provider
	meter *meter
}

// Metered returns a provider whose registrations count as pinned by this process.
func (e *Engine) Metered(p verbs.Provider) Metered { return Metered{p, e.meter} }

// Pinned returns the peak and the mean of what was pinned through providers that are Metered, in bytes.
func (e *Engine) Pinned() (peak, mean int64) { return e.meter.read() }

// Missed counts a use that was no hit: its outcome, its call site, and when communication began and ended to wait
// for it, by clock.NowNs. It tells the helper, which did not know of the use; id is zero if the region is not known.
func (e *Engine) Missed(o regcache.Outcome, id mem.RegionID, site predictor.CallSite, startNs, endNs int64) {
	e.meter.missed(o, site, startNs, endNs)
	if o != regcache.Hit && e.helper != nil {
		e.helper.Missed(schedule.Miss{Region: id, NeedNs: startNs, StalledNs: endNs - startNs})
	}
}

// Uncached is Missed for a use that the cache does not keep: the helper could do nothing about the next one.
func (e *Engine) Uncached(o regcache.Outcome, site predictor.CallSite, startNs, endNs int64) {
	e.meter.missed(o, site, startNs, endNs)
}

// Registered counts bytes as pinned that a thread of the program has registered by itself, and how long it took.
func (e *Engine) Registered(bytes, tookNs int64) {
	m := e.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registerNs += tookNs
	m.firstUsesNs += tookNs
	m.pinned.Change(m.nowNs(), bytes)
}

// Register implements verbs.Provider.
func (p Metered) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	startNs := p.meter.nowNs()
	region, err := p.Provider.Register(r, a)
	if err == nil {
		p.meter.registered(int64(region.Range.Len()), startNs)
	}
	return region, err
}

// Deregister implements verbs.Provider.
func (p Metered) Deregister(region verbs.Region) error {
	startNs := p.meter.nowNs()
	err := p.Provider.Deregister(region)
	if err == nil {
		p.meter.registered(-int64(region.Range.Len()), startNs)
	}
	return err
}
