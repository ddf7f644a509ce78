package regcache

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestLimitOfTheProcessEvictsIdleRegionsOfAllDomains(t *testing.T) {
	g := NewGroup(int64(20 * mem.PageSize))
	a := newFixture(t, sim.Options{}, Options{Group: g})
	b := newFixture(t, sim.Options{}, Options{Group: g})
	a.use(span(0, 10), both, First)
	held := a.get(span(20, 4), both, First)
	b.use(span(0, 10), both, First) // at the expense of a's idle one
	if n := a.Stats().Pinned.Regions; n != 1 || g.Bytes() != int64(14*mem.PageSize) {
		t.Errorf("a has %d registrations, the process %d bytes", n, g.Bytes())
	}
	ref := b.get(span(40, 16), both, First) // at the expense of b's own
	if _, _, err := a.f.Acquire(span(40, 1), both); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("with all in use: %v", err)
	}
	a.put(held)
	b.put(ref)
	if n, err := g.Clean(); n != 2 || err != nil || g.Bytes() != 0 {
		t.Errorf("clean: %d, %v, %d bytes left", n, err, g.Bytes())
	}
}

func TestKernelShortageEvictsIdleRegionsOfOtherDomains(t *testing.T) {
	// Two domains on one device: what one holds, the other lacks.
	p := sim.New(sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(10 * mem.PageSize)}})
	g := NewGroup(mem.Unlimited)
	var caches [2]*Cache
	for i := range caches {
		c, err := New(p, Options{Group: g, MaxBytes: mem.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		caches[i] = c
	}
	for round := range 4 {
		ref, _, err := caches[round%2].Acquire(span(0, 8), both)
		if err != nil {
			t.Fatal(err)
		}
		caches[round%2].Release(ref)
	}
	for _, c := range caches {
		if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if g.Bytes() != 0 || p.Usage() != (verbs.Usage{}) {
		t.Errorf("%d bytes, %+v", g.Bytes(), p.Usage())
	}
}

func TestLoweredLimitsEvictAtOnce(t *testing.T) {
	g := NewGroup(mem.Unlimited)
	fx := newFixture(t, sim.Options{}, Options{Group: g})
	for i := range uint64(6) {
		fx.use(span(20*i, 10), both, First)
	}
	if err := fx.SetLimits(Limits{Bytes: int64(45 * mem.PageSize), Regions: 3}); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if n := fx.Stats().Pinned.Regions; n != 3 {
		t.Errorf("limit of 3: %d registrations", n)
	}
	if err := g.SetLimits(Limits{int64(100 * mem.PageSize), 2}); err != nil {
		t.Fatal(err)
	}
	if n := fx.Stats().Pinned.Regions; n != 2 {
		t.Errorf("limit of 2 in the process: %d registrations", n)
	}
	held := []Ref{fx.get(span(100, 10), both, Hit), fx.get(span(80, 10), both, Hit)}
	if _, _, err := fx.f.Acquire(span(500, 1), both); !errors.Is(err, verbs.ErrRegions) {
		t.Errorf("with both in use: %v", err)
	}
	fx.put(held...)
	if err := g.SetLimits(Limits{int64(10 * mem.PageSize), mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if n := fx.Stats().Pinned.Regions; n != 1 {
		t.Errorf("limit of 10 pages: %d registrations of 10", n)
	}
	if err := fx.SetLimits(Limits{Bytes: -1}); err == nil {
		t.Error("a negative limit was accepted")
	}
}

// fakeShare is a budget in pages, of which free ones belong to nobody.
type fakeShare struct {
	mu                   sync.Mutex
	own, free, most      int64
	settled, awaited     int64 // the last arguments, in pages
	ceiling, keep, found int64 // what Settle returns, and what Await finds
}

func pagesOf(bytes int64) int64 { return bytes / int64(mem.PageSize) }

func (s *fakeShare) bytes(pages int64) int64 { return pages * int64(mem.PageSize) }

func (s *fakeShare) Most() int64 { return s.bytes(s.most) }

func (s *fakeShare) Grow(bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more := pagesOf(bytes) - s.own; more > 0 && more <= s.free {
		s.own, s.free = s.own+more, s.free-more
	}
	return s.bytes(s.own)
}

func (s *fakeShare) Shrink(bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if less := s.own - pagesOf(bytes); less > 0 {
		s.own, s.free = s.own-less, s.free+less
	}
	return s.bytes(s.own)
}

func (s *fakeShare) Await(bytes int64) bool {
	s.mu.Lock()
	s.awaited = pagesOf(bytes)
	s.free, s.found = s.free+s.found, 0
	s.mu.Unlock()
	return s.Grow(bytes) >= bytes
}

func (s *fakeShare) Settle(bytes int64) (int64, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = pagesOf(bytes)
	return s.bytes(s.ceiling), s.bytes(s.keep)
}

func sharing(t *testing.T, s *fakeShare) (*fixture, *Group) {
	g := NewGroup(mem.Unlimited)
	g.SetShare(s)
	return newFixture(t, sim.Options{}, Options{Group: g}), g
}

func TestShareGrowsWhileThereIsFreeBudgetThenEvicts(t *testing.T) {
	s := &fakeShare{own: 10, free: 10, most: 100}
	fx, g := sharing(t, s)
	fx.use(span(0, 10), both, First)
	fx.use(span(20, 10), both, First)
	if s.own != 20 || s.free != 0 {
		t.Errorf("own %d, free %d", s.own, s.free)
	}
	fx.use(span(40, 10), both, First) // evicts
	if n := fx.Stats().Evicted; n != 1 || g.Bytes() != s.bytes(20) || s.awaited != 0 {
		t.Errorf("%d evicted, %d bytes, waited for %d pages", n, g.Bytes(), s.awaited)
	}
}

func TestRequestWithoutRoomWaitsForOthersOnce(t *testing.T) {
	s := &fakeShare{own: 10, most: 100, found: 6}
	fx, _ := sharing(t, s)
	held := fx.get(span(0, 10), both, First)
	more := fx.get(span(20, 6), both, First) // which others have released
	if s.awaited != 16 {
		t.Errorf("waited for %d pages", s.awaited)
	}
	_, _, err := fx.Acquire(span(40, 4), both)
	if !errors.Is(err, verbs.ErrPinnedMemory) || !strings.Contains(err.Error(), "in the node: ") {
		t.Errorf("without room anywhere: %v", err)
	}
	s.found = 4
	if _, _, err := fx.Acquire(span(40, 101), both); err == nil || s.awaited != 20 {
		t.Errorf("more than the budget: %v, waited for %d pages", err, s.awaited)
	}
	fx.put(held, more)
}

func TestHelperDoesNotWaitForOthers(t *testing.T) {
	s := &fakeShare{own: 10, most: 100, found: 10}
	fx, _ := sharing(t, s)
	id := fx.use(span(20, 6), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Fatal(err)
	}
	held := fx.get(span(0, 10), both, First)
	if err := fx.Register(id); !errors.Is(err, verbs.ErrPinnedMemory) || s.awaited != 0 {
		t.Errorf("%v, waited for %d pages", err, s.awaited)
	}
	fx.put(held)
}

func TestSettlingReleasesWhatOthersNeedMore(t *testing.T) {
	s := &fakeShare{own: 40, most: 40, ceiling: 25, keep: 25}
	fx, g := sharing(t, s)
	for i := range uint64(4) {
		fx.use(span(20*i, 10), both, First)
	}
	g.SettleShare()
	if s.settled != 40 || s.own != 25 || g.Bytes() != s.bytes(20) {
		t.Errorf("settled with %d pages, a share of %d, %d bytes registered", s.settled, s.own, g.Bytes())
	}
	held := []Ref{fx.get(span(40, 10), both, Hit), fx.get(span(60, 10), both, Hit)}
	s.ceiling, s.keep = 5, 5
	g.SettleShare()
	if s.settled != 20 || s.own != 20 || g.Bytes() != s.bytes(20) {
		t.Errorf("in use: settled with %d pages, a share of %d, %d bytes registered", s.settled, s.own, g.Bytes())
	}
	fx.put(held...)
}

func TestRegistrationsPastTheCacheCount(t *testing.T) {
	s := &fakeShare{own: 20, most: 40, ceiling: 40}
	fx, g := sharing(t, s)
	fx.use(span(0, 10), both, First)
	if err := g.Charge(s.bytes(15)); err != nil || fx.Stats().Evicted != 1 {
		t.Errorf("%v, %d evicted", err, fx.Stats().Evicted)
	}
	if err := g.Charge(s.bytes(10)); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("without room: %v", err)
	}
	s.found = 5
	if err := g.Charge(s.bytes(10)); err != nil {
		t.Errorf("with room that others release: %v", err)
	}
	g.Uncharge(s.bytes(10))
	g.Uncharge(s.bytes(15))
	fx.use(span(0, 10), both, Late)
	if got := g.Counts(); got.First != 1 || got.Late != 1 || got.Pinned.Bytes != s.bytes(10) {
		t.Errorf("%+v", got)
	}
}
