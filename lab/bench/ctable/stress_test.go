package ctable

import (
	"errors"
	"os"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

const (
	base       = 0x7f5500000000
	maxHandles = 1 << 22
)

// provider is sim with handles that index words C can read.
type provider struct {
	*sim.Provider
	mu    sync.Mutex
	alive []uint32
	last  uint64
	under map[uint64]verbs.Region

	refuses error // Register; nil: it doesn't
}

func newProvider(t *testing.T) *provider {
	m, err := unix.Mmap(-1, 0, 4*maxHandles, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return &provider{Provider: sim.New(sim.Options{}), alive: unsafe.Slice((*uint32)(unsafe.Pointer(&m[0])), maxHandles),
		under: map[uint64]verbs.Region{}}
}

func (p *provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if p.refuses != nil {
		return verbs.Region{}, p.refuses
	}
	g, err := p.Provider.Register(r, a)
	if err != nil {
		return g, err
	}
	p.mu.Lock()
	p.last++
	inner := g
	g.Handle, g.LKey, g.RKey = p.last, uint32(p.last), ^uint32(p.last)
	p.under[g.Handle] = inner
	p.mu.Unlock()
	atomic.StoreUint32(&p.alive[g.Handle], 1)
	return g, nil
}

func (p *provider) Deregister(g verbs.Region) error {
	atomic.StoreUint32(&p.alive[g.Handle], 0)
	p.mu.Lock()
	inner := p.under[g.Handle]
	delete(p.under, g.Handle)
	p.mu.Unlock()
	return p.Provider.Deregister(inner)
}

// TestReferencesTakenByCThreadsStayRegistered has C threads hit while a
// helper deregisters and registers, mappings change and limits evict.
func TestReferencesTakenByCThreadsStayRegistered(t *testing.T) {
	testwait.Bound(t)
	for _, anyCovering := range []bool{false, true} {
		p := newProvider(t)
		c, err := regcache.New(p, regcache.Options{AnyCovering: anyCovering, MaxBytes: 200 << 12})
		if err != nil {
			t.Fatal(err)
		}
		handle := cgo.NewHandle(c)
		stop := make(chan struct{})
		var churn sync.WaitGroup
		churn.Go(func() {
			for id := mem.RegionID(1); ; id++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := c.Deregister(id); errors.Is(err, regcache.ErrUnknown) {
					id = max(id, 400) - 400
					if c.Invalidate(mem.Range{Start: base + mem.Addr(id%64)<<12, End: base + mem.Addr(id%64+3)<<12}) != nil {
						t.Error("invalidate failed")
					}
				}
				c.Register(id / 2)
				if id%64 == 0 {
					c.Clean()
					if err := c.Verify(); err != nil {
						t.Error(err)
					}
				}
			}
		})
		res := Stress(Run{Cache: handle, Base: base, Pages: 64, Alive: &p.alive[0], Threads: 3, Iterations: 20000})
		close(stop)
		churn.Wait()
		t.Logf("%+v", res)
		c.Sweep()
		if s := c.Stats(); s.Lingering != 0 {
			t.Errorf("nobody holds a reference, and %d registrations linger", s.Lingering)
		}
		if res.Stale != 0 || res.Wrong != 0 || res.Outcomes[regcache.Hit] == 0 || res.Outcomes[regcache.Late] == 0 {
			t.Errorf("got %+v", res)
		}
		if err := c.Verify(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil || p.Usage().Regions != 0 {
			t.Errorf("close: %v; %+v left", err, p.Usage())
		}
		handle.Delete()
	}
}

// TestSoakInvalidationsUnderHitsOfCLeaveNothingRegistered is the race in C of
// the test of this name in package regcache.
func TestSoakInvalidationsUnderHitsOfCLeaveNothingRegistered(t *testing.T) {
	testwait.SkipUnderRace(t, "its threads are of C, which make test-sanitize looks at")
	iterations := 20_000
	if os.Getenv("PINWHEEL_SOAK") != "" {
		iterations = 70_000
	}
	p := newProvider(t)
	c, err := regcache.New(p, regcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handle := cgo.NewHandle(c)
	defer handle.Delete()
	if r := Race(Run{Cache: handle, Base: base, Threads: 16, Iterations: iterations}); r.Failed != 0 {
		t.Errorf("%+v", r)
	}
	c.Sweep()
	s := c.Stats()
	t.Logf("%d invalidations, %d hits: %d left", s.Invalidated, s.Hits, s.Lingering)
	if _, err := c.Clean(); err != nil || s.Lingering != 0 || p.Usage().Regions != 0 {
		t.Errorf("%v, left for ever: %+v", err, s)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestHitThatCGivesUpLeavesNothingRegistered(t *testing.T) {
	p := newProvider(t)
	c, err := regcache.New(p, regcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handle := cgo.NewHandle(c)
	defer handle.Delete()
	if !GiveUp(handle, base) {
		t.Fatal("it did not come so far")
	}
	if n := c.Stats().Lingering; n != 1 {
		t.Errorf("%d registrations linger before the next request: the test shows nothing", n)
	}
	Pipeline(handle, base+1<<20, 1<<16, 1<<16) // any request
	if s := c.Stats(); s.Lingering != 0 || s.Pinned.Regions != 1 {
		t.Errorf("left for ever: %+v", s)
	}
	if err := c.Close(); err != nil || p.Usage().Regions != 0 {
		t.Errorf("Close: %v, left %+v", err, p.Usage())
	}
}

func TestPipelinedProtocolInCPostsOnceWhenAllIsRegistered(t *testing.T) {
	c, err := regcache.New(newProvider(t), regcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handle := cgo.NewHandle(c)
	defer handle.Delete()
	if n := Pipeline(handle, base, 10<<16, 1<<16); n != 10 {
		t.Errorf("nothing registered: %d posts, want 10", n)
	}
	ref, _, err := c.Acquire(mem.Range{Start: base, End: base + 10<<16}, verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	c.Release(ref)
	if n := Pipeline(handle, base, 10<<16, 1<<16); n != 1 {
		t.Errorf("all registered: %d posts, want 1", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
