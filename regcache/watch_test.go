package regcache

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs/sim"
	"pinwheel/vmwatch"
)

var _ Watcher = (*vmwatch.Watcher)(nil)

// watcher is told of changes by the test.
type watcher struct {
	t      *testing.T
	word   *uint64
	refuse func(mem.Range) error
	verify bool
	// verifies, if set, decides for each range; changes of those are not notified.
	verifies func(mem.Range) bool
	mu       sync.Mutex
	watched  map[uint64]mem.Range
	last     uint64
	pending  []mem.Range
	stale    map[uint64]bool      // tokens whose range changed without notice
	pinning  func()               // called between Pinning and Pinned
	foreign  func(mem.Range) bool // what is memory of a device
	absent   int                  // how often Pinned finds no pages, and does not know why
	asked    int                  // calls of Pinned
}

func newWatcher(t *testing.T) *watcher {
	return &watcher{t: t, word: new(uint64), watched: map[uint64]mem.Range{}, stale: map[uint64]bool{}}
}

func (w *watcher) Word() *uint64 { return w.word }

func (w *watcher) Watch(r mem.Range) (uint64, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		if err := w.refuse(r); err != nil {
			return 0, false, err
		}
	}
	w.last++
	w.watched[w.last] = r
	if w.verifies != nil {
		return w.last, w.verifies(r), nil
	}
	return w.last, w.verify, nil
}

func (w *watcher) Unwatch(token uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.watched[token]; !ok {
		w.t.Errorf("unwatch of unknown token %d", token)
	}
	delete(w.watched, token)
}

func (w *watcher) Pinning(token uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stale, token)
}

func (w *watcher) Pinned(token uint64) error {
	if f := w.pinning; f != nil {
		f()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.absent > 0 {
		w.absent--
		return mem.ErrChanged
	}
	if w.foreign != nil && w.foreign(w.watched[token]) {
		return vmwatch.ErrForeign
	}
	if w.stale[token] {
		delete(w.stale, token)
		return mem.ErrChanged
	}
	return nil
}

func (w *watcher) Unchanged(token uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stale[token]
}

func (w *watcher) Drain(drop func(mem.Range)) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := atomic.LoadUint64(w.word)
	for _, r := range w.pending {
		drop(r)
	}
	w.pending = nil
	return g
}

// change is an unmap of r, seen if any watched range overlaps it.
func (w *watcher) change(r mem.Range) {
	w.mu.Lock()
	defer w.mu.Unlock()
	notify := false
	for token, o := range w.watched {
		switch {
		case !o.Overlaps(r):
		case w.verifies != nil && w.verifies(o):
			w.stale[token] = true
		default:
			notify = true
		}
	}
	if notify {
		w.pending = append(w.pending, r)
		atomic.AddUint64(w.word, 1)
	}
}

func TestChangedMappingIsNoticedByTheNextHit(t *testing.T) {
	w := newWatcher(t)
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	fx.use(span(0, 16), both, First)
	other := fx.use(span(100, 16), both, First)
	w.change(span(3, 1))
	if got := fx.use(span(100, 16), both, Hit); got != other {
		t.Errorf("another region was lost: %d, want %d", got, other)
	}
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("the changed region is still registered: %+v", u)
	}
	before := fx.f.hits
	fx.use(span(100, 16), both, Hit)
	if fx.f.hits != before+1 {
		t.Error("hits take the lock although the change was dealt with")
	}
	fx.use(span(0, 16), both, First)
	w.change(mem.Range{Start: 0, End: ^mem.Addr(0)}) // overrun
	fx.use(span(0, 16), both, First)
	if s := fx.Stats(); s.Invalidated != 3 || s.Known != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAbsentRegionStaysWatched(t *testing.T) {
	w := newWatcher(t)
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	id := fx.use(span(0, 16), both, First)
	fx.Deregister(id)
	w.change(span(0, 16))
	if err := fx.Register(id); !errors.Is(err, ErrUnknown) {
		t.Errorf("the helper registered what was unmapped: %v", err)
	}
	if len(w.watched) != 0 {
		t.Errorf("still watched: %v", w.watched)
	}
}

func TestMappingThatChangesDuringRegistrationIsRegisteredAgain(t *testing.T) {
	w := newWatcher(t)
	changes := 3
	fx := newFixture(t, sim.Options{Fail: func(op sim.Op, r mem.Range) error {
		if op == sim.OpRegister && changes > 0 {
			changes--
			w.change(r)
		}
		return nil
	}}, Options{Watcher: w})
	fx.use(span(0, 16), both, First)
	if s := fx.p.Stats(); s.Registers != 4 || s.Regions != 1 {
		t.Errorf("%+v", s)
	}
	fx.use(span(0, 16), both, Hit)
	changes = 1000 // never holds still
	ref := fx.get(span(50, 4), both, First)
	if ref.ID() != 0 {
		t.Error("cached although it never held still")
	}
	fx.put(ref)
}

func TestRangeThatCannotBeWatchedIsRegisteredForOneUse(t *testing.T) {
	w := newWatcher(t)
	w.refuse = func(r mem.Range) error {
		if r.Overlaps(span(0, 16)) {
			return vmwatch.ErrNotCacheable
		}
		return nil
	}
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	fx.use(span(50, 4), both, First)
	for _, want := range []Outcome{First, Late} {
		ref := fx.get(span(0, 16), both, want)
		if ref.ID() != 0 {
			t.Errorf("uncached registration has ID %d", ref.ID())
		}
		fx.put(ref)
		if u := fx.p.Usage(); u.Regions != 1 {
			t.Errorf("kept: %+v", u)
		}
	}
	if s := fx.Stats(); s.Uncached != 2 || s.Known != 1 {
		t.Errorf("%+v", s)
	}
}

func TestRangeThatMustBeVerifiedIsAskedForAtEveryHit(t *testing.T) {
	w := newWatcher(t)
	w.verify = true
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	id := fx.use(span(0, 16), both, First)
	if got := fx.use(span(0, 16), both, Hit); got != id {
		t.Errorf("ID %d, was %d", got, id)
	}
	if ref, ok := fx.f.IsRegistered(span(0, 16), both); !ok {
		t.Error("not registered")
	} else {
		fx.put(ref)
	}
	// Changed, and nobody was notified: it is the same buffer, registered anew.
	again := func(watches uint64) {
		t.Helper()
		before := fx.p.Stats().Registers
		w.stale[w.last] = true
		watches += w.last
		if got := fx.use(span(0, 16), both, Late); got != id {
			t.Errorf("ID %d, was %d", got, id)
		}
		if n := fx.p.Stats().Registers - before; n != 1 || w.last != watches {
			t.Errorf("%d registrations, %d watches too many", n, int64(w.last-watches))
		}
		fx.use(span(0, 16), both, Hit)
	}
	again(0)
	held := fx.get(span(0, 16), both, Hit)
	again(1) // what is in use lives on under the watch that it has
	fx.put(held)
	again(0)
	w.stale[w.last] = true
	if _, ok := fx.f.IsRegistered(span(0, 16), both); ok {
		t.Error("a stale region counts as registered")
	}
	fx.check()
}

func TestRangeThatChangesWhilePinnedIsPinnedAgain(t *testing.T) {
	w := newWatcher(t)
	w.verify = true
	times := 2
	w.pinning = func() {
		if times > 0 {
			times--
			w.mu.Lock()
			w.stale[w.last] = true
			w.mu.Unlock()
		}
	}
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	fx.use(span(0, 16), both, First)
	fx.use(span(0, 16), both, Hit)
	if s := fx.p.Stats(); s.Registers != 3 || s.Deregisters != 2 {
		t.Errorf("%+v", s)
	}
	times = 100 // never holds still
	ref := fx.get(span(50, 4), both, First)
	if ref.ID() != 0 {
		t.Error("cached although it never held still")
	}
	fx.put(ref)
}

func TestEveryWatchIsEndedOnce(t *testing.T) {
	w := newWatcher(t)
	p := sim.New(sim.Options{})
	c, err := New(p, Options{Watcher: w})
	if err != nil {
		t.Fatal(err)
	}
	var refs []Ref
	for _, r := range []mem.Range{span(0, 16), span(2, 16), span(100, 4), span(100, 2), span(50, 8)} {
		ref, _, err := c.Acquire(r, both)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	w.change(span(50, 1))
	for _, ref := range slices.Backward(refs) {
		c.Release(ref)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.watched) != 0 || p.Usage().Regions != 0 {
		t.Errorf("watched %v, registered %+v", w.watched, p.Usage())
	}
}

// With userfaultfd a page fault of ours makes the program register anew.
func TestVerifiedHitAllocatesNothing(t *testing.T) {
	w := newWatcher(t)
	w.verify = true
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	fx.use(span(0, 16), both, First)
	if n := testing.AllocsPerRun(1000, func() { fx.use(span(0, 16), both, Hit) }); n != 0 {
		t.Errorf("%v allocations for each", n)
	}
}
