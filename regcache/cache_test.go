package regcache

import (
	"errors"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

const (
	read  = verbs.AccessRemoteRead
	write = verbs.AccessLocalWrite | verbs.AccessRemoteWrite
	both  = read | write
)

// base is an address as mmap returns them; sim never touches it.
const base = mem.Addr(0x7f12_3456_0000)

// span returns n pages from page i after base.
func span(i, n uint64) mem.Range {
	start := base + mem.Addr(i*mem.PageSize)
	return mem.Range{Start: start, End: start + mem.Addr(n*mem.PageSize)}
}

// fixture is a cache over a simulated provider, checked after every step.
type fixture struct {
	*testing.T
	*Cache
	p *sim.Provider
	f *Local
}

func newFixture(t *testing.T, so sim.Options, o Options) *fixture {
	t.Helper()
	p := sim.New(so)
	return newFixtureOver(t, p, p, o)
}

// newFixtureOver is newFixture for a provider over a simulated one.
func newFixtureOver(t *testing.T, over verbs.Provider, p *sim.Provider, o Options) *fixture {
	t.Helper()
	c, err := New(over, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Thread()
	if err != nil {
		t.Fatal(err)
	}
	fx := &fixture{t, c, p, f}
	testwait.Bound(t, func() any { return c.Stats() })
	t.Cleanup(func() {
		fx.check()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if u := p.Usage(); u.Regions != int64(c.Stats().Lingering) {
			t.Errorf("after Close the provider holds %+v, the cache %+v", u, c.Stats())
		}
	})
	return fx
}

func (fx *fixture) check() {
	fx.Helper()
	if err := fx.Verify(); err != nil {
		fx.Fatal(err)
	}
	u := fx.p.Usage()
	if s := fx.Stats(); s.Leaked == 0 && (u.Regions != s.Pinned.Regions || u.PinnedBytes != s.Pinned.Bytes) {
		fx.Fatalf("the provider holds %+v, the cache accounts for %+v", u, s.Pinned)
	}
}

// get acquires and requires an outcome.
func (fx *fixture) get(r mem.Range, a verbs.Access, want Outcome) Ref {
	fx.Helper()
	ref, got, err := fx.f.Acquire(r, a)
	if err != nil {
		fx.Fatalf("acquire %v: %v", r, err)
	}
	if got != want {
		fx.Errorf("acquire %v: %v, want %v", r, got, want)
	}
	if g := ref.Region(); !g.Range.Contains(r) || !g.Access.Includes(a) || g.LKey != ref.LKey() || g.RKey != ref.RKey() {
		fx.Errorf("acquire %v for %#x: got %+v", r, a, g)
	}
	fx.check()
	return ref
}

func (fx *fixture) put(refs ...Ref) {
	fx.Helper()
	for _, r := range refs {
		fx.f.Release(r)
	}
	fx.check()
}

// use is get and put.
func (fx *fixture) use(r mem.Range, a verbs.Access, want Outcome) mem.RegionID {
	fx.Helper()
	ref := fx.get(r, a, want)
	id := ref.ID()
	fx.put(ref)
	return id
}

func TestRegionKeepsItsIDThroughHelperDeregistrationAndRegistration(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if got := fx.use(span(0, 16), both, Late); got != id {
		t.Errorf("after deregistration: ID %d, was %d", got, id)
	}
	for _, try := range []func(mem.RegionID) (bool, error){fx.TryDeregister, fx.TryRegister} { // both are idempotent
		for i := range 2 {
			if did, err := try(id); err != nil || did != (i == 0) {
				t.Fatalf("attempt %d: did something: %v, %v", i, did, err)
			}
		}
	}
	if got := fx.use(span(0, 16), both, Hit); got != id {
		t.Errorf("after the helper registered: ID %d, was %d", got, id)
	}
	ref := fx.get(span(0, 16), both, Hit)
	if err := fx.Deregister(id); !errors.Is(err, ErrInUse) {
		t.Errorf("deregister in use: %v", err)
	}
	fx.put(ref)
	if err := fx.Deregister(id + 1000); !errors.Is(err, ErrUnknown) {
		t.Errorf("deregister unknown: %v", err)
	}
}
