package realtime

import (
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/internal/clock"
	"pinwheel/internal/usage"
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// countingProvider counts in real time what the simulation counts in virtual
// time, between the cache and a real provider. A page is pinned from the begin of
// its registration to the end of its deregistration. All methods are safe for
// concurrent use.
type countingProvider struct {
	verbs.Provider
	commThread int // thread ID of the communication path

	// mu protects all below. It is held while counting only, never during a call
	// to the provider. No lock is taken under it.
	mu       sync.Mutex
	startNs  int64
	nowNs    int64 // of the last change, since startNs
	pins     *pinned.Counter
	usage    usage.Usage
	held     map[uint64]*heldRegion // by handle
	inFlight int                    // provider calls
	calls    uint64                 // provider calls begun
	wasted   int64
	commRegs int64 // registrations by the communication path
	closed   bool  // the run is over: what follows is cleaning up
}

// heldRegion is one registration in force.
type heldRegion struct {
	byHelper, used bool
}

func newCountingProvider(provider verbs.Provider, commThread int, fromNs, toNs int64) *countingProvider {
	p := &countingProvider{Provider: provider, commThread: commThread, held: map[uint64]*heldRegion{}, startNs: clock.NowNs(), usage: usage.New(fromNs, toNs)}
	p.pins = pinned.NewCounter(&p.nowNs, nil)
	p.pins.AddUsage(&p.usage)
	return p
}

// begin enters a provider call, end leaves it.
func (p *countingProvider) begin() {
	p.nowNs = max(p.nowNs, clock.NowNs()-p.startNs)
	p.inFlight++
	p.calls++
}

func (p *countingProvider) end() {
	p.nowNs = max(p.nowNs, clock.NowNs()-p.startNs)
	p.inFlight--
}

// Register implements verbs.Provider.
func (p *countingProvider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	aligned := r.PageAligned()
	p.mu.Lock()
	p.begin()
	p.pins.Pin(p.nowNs, aligned)
	p.mu.Unlock()
	reg, err := p.Provider.Register(r, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	if err != nil {
		p.pins.Unpin(p.nowNs, aligned)
		return reg, err
	}
	byHelper := unix.Gettid() != p.commThread
	if !byHelper {
		p.commRegs++
	}
	p.held[reg.Handle] = &heldRegion{byHelper: byHelper}
	return reg, nil
}

// Deregister implements verbs.Provider.
func (p *countingProvider) Deregister(reg verbs.Region) error {
	p.mu.Lock()
	h := p.held[reg.Handle]
	delete(p.held, reg.Handle) // its handle may be given out again before this call returns
	p.begin()
	p.mu.Unlock()
	err := p.Provider.Deregister(reg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	if err != nil {
		return err
	}
	p.pins.Unpin(p.nowNs, reg.Range)
	if h != nil && h.byHelper && !h.used && !p.closed {
		p.wasted++
	}
	return nil
}

// used notes that the communication path has acquired a registration. It
// returns how many that path has made so far.
func (p *countingProvider) used(handle uint64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.held[handle]; h != nil {
		h.used = true
	}
	return p.commRegs
}

// start makes nowNs the time 0 of the count.
func (p *countingProvider) start(nowNs int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startNs = nowNs
}

// finish ends the count and returns the peak and mean of the pinned bytes,
// and how many registrations the helper made in vain.
func (p *countingProvider) finish(nowNs int64) (peak int64, mean float64, wasted int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.usage.Peak(), p.usage.Close(nowNs - p.startNs), p.wasted
}

// quiet returns what the provider counts as pinned, if no call is under way,
// and a number that changes with every call.
func (p *countingProvider) quiet() (bytes int64, calls uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, is := p.Provider.(verbs.Accountant); is && p.inFlight == 0 {
		return a.Usage().PinnedBytes, p.calls, true
	}
	return 0, p.calls, false
}
