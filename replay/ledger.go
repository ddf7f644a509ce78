package replay

import (
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/replay/pinned"
	"pinwheel/verbs"
)

// ledger stands between the cache and a real provider and books in real time
// what virtual mode books in virtual time: a page is pinned from the begin of
// its registration to the end of its deregistration. All methods are safe for
// concurrent use.
type ledger struct {
	verbs.Provider
	commThread int // thread ID of the communication path

	// mu protects all below. It is held for the booking only, never during a
	// call to the provider; no lock is taken under it.
	mu       sync.Mutex
	startNs  int64
	nowNs    int64 // of the booking, since startNs
	pins     *pinned.Counter
	usage    pinned.Usage
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

func newLedger(p verbs.Provider, commThread int, fromNs, toNs int64) *ledger {
	l := &ledger{Provider: p, commThread: commThread, held: map[uint64]*heldRegion{}, startNs: helper.NowNs(), usage: pinned.NewUsage(fromNs, toNs)}
	l.pins = pinned.NewCounter(&l.nowNs, nil)
	l.pins.AddUsage(&l.usage)
	return l
}

// begin enters a provider call, end leaves it.
func (l *ledger) begin() {
	l.nowNs = max(l.nowNs, helper.NowNs()-l.startNs)
	l.inFlight++
	l.calls++
}

func (l *ledger) end() {
	l.nowNs = max(l.nowNs, helper.NowNs()-l.startNs)
	l.inFlight--
}

// Register implements verbs.Provider.
func (l *ledger) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	aligned := r.PageAligned()
	l.mu.Lock()
	l.begin()
	l.pins.Pin(l.nowNs, aligned)
	l.mu.Unlock()
	reg, err := l.Provider.Register(r, a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	if err != nil {
		l.pins.Unpin(l.nowNs, aligned)
		return reg, err
	}
	byHelper := unix.Gettid() != l.commThread
	if !byHelper {
		l.commRegs++
	}
	l.held[reg.Handle] = &heldRegion{byHelper: byHelper}
	return reg, nil
}

// Deregister implements verbs.Provider.
func (l *ledger) Deregister(reg verbs.Region) error {
	l.mu.Lock()
	h := l.held[reg.Handle]
	delete(l.held, reg.Handle) // its handle may be given out again before this call returns
	l.begin()
	l.mu.Unlock()
	err := l.Provider.Deregister(reg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	if err != nil {
		return err
	}
	l.pins.Unpin(l.nowNs, reg.Range)
	if h != nil && h.byHelper && !h.used && !l.closed {
		l.wasted++
	}
	return nil
}

// used notes that the communication path has acquired a registration. It
// returns how many that path has made so far.
func (l *ledger) used(handle uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[handle]; h != nil {
		h.used = true
	}
	return l.commRegs
}

// start makes nowNs the time 0 of the accounts.
func (l *ledger) start(nowNs int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startNs = nowNs
}

// finish ends the accounts and returns the peak and mean of the pinned bytes,
// and how many registrations the helper made in vain.
func (l *ledger) finish(nowNs int64) (peak int64, mean float64, wasted int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.usage.Peak(), l.usage.Close(nowNs - l.startNs), l.wasted
}

// quiet returns what the provider counts as pinned, if no call is under way,
// and a number that changes with every call.
func (l *ledger) quiet() (bytes int64, calls uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, is := l.Provider.(verbs.Accountant); is && l.inFlight == 0 {
		return a.Usage().PinnedBytes, l.calls, true
	}
	return 0, l.calls, false
}
