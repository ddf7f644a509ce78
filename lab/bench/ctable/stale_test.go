package ctable

import (
	"fmt"
	"os"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// versioned is a provider whose registrations have the versions of their pages.
type versioned struct {
	*provider
	v *pageVersions
}

type pageVersions struct {
	now        [firstPages]uint32
	told       [firstPages]uint32
	registered [firstHandles][firstPages]uint32
}

func (p versioned) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	g, err := p.provider.Register(r, a)
	if err != nil {
		return g, err
	}
	for i := (r.Start - base) / mem.Addr(mem.PageSize); i < (r.End-base)/mem.Addr(mem.PageSize); i++ {
		atomic.StoreUint32(&p.v.registered[g.Handle][i], atomic.LoadUint32(&p.v.now[i]))
	}
	return g, nil
}

// changing is memory whose mapping changes.
type changing struct {
	watcher regcache.Watcher
	// change changes the mapping of r. It calls now before a registration can have the new pages, and told once whoever
	// asks from then on must not get one that has the old ones.
	change func(r mem.Range, now, told func())
	close  func()
}

// changingInTests changes nothing, and tells of it as a kernel would.
func changingInTests(t *testing.T) changing {
	w := newWatcher(t)
	return changing{w, func(r mem.Range, now, told func()) {
		w.publish(r)
		now()
		w.publish(r)
		told()
	}, func() {
		if n := w.interested(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	}}
}

// changingInKernel maps other pages at the addresses of the tests.
func changingInKernel(t *testing.T) changing {
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf"})
	if err != nil {
		t.Skip(err)
	}
	place := func(r mem.Range, flags int) {
		const rights = unix.PROT_READ | unix.PROT_WRITE
		at := addr(uintptr(r.Start))
		if _, err := unix.MmapPtr(-1, 0, at, uintptr(r.Len()), rights, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE|flags); err != nil {
			t.Error(err)
		}
	}
	all := page(0, firstPages)
	place(all, unix.MAP_FIXED_NOREPLACE)
	return changing{w, func(r mem.Range, now, told func()) {
		now()
		place(r, unix.MAP_FIXED)
		told()
	}, func() {
		w.Close()
		unix.MunmapPtr(addr(uintptr(all.Start)), uintptr(all.Len()))
	}}
}

// TestSoakFirstUsesAreNeverStale has C threads register first uses while mappings change, limits come and go,
// and a helper registers and deregisters. With PINWHEEL_SOAK, each thread has five times as many uses.
func TestSoakFirstUsesAreNeverStale(t *testing.T) {
	testwait.SkipUnderRace(t, "its threads are of C, which make test-sanitize looks at")
	for name, begin := range map[string]func(*testing.T) changing{"in tests": changingInTests, "in the kernel": changingInKernel} {
		for _, anyCovering := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, any covering %v", name, anyCovering), func(t *testing.T) {
				testwait.Bound(t)
				firstUsesAreNeverStale(t, begin(t), anyCovering)
			})
		}
	}
}

func firstUsesAreNeverStale(t *testing.T, memory changing, anyCovering bool) {
	v := outside[pageVersions](t)
	p := versioned{newProvider(t), v}
	var late atomic.Int64 // known regions that a C thread has registered
	c, err := regcache.New(p, regcache.Options{
		AnyCovering: anyCovering, Watcher: memory.watcher, MaxBytes: mem.Unlimited, MaxRegions: mem.Unlimited,
		OnPublish: func(a regcache.Published) {
			if a.Outcome == regcache.Late && a.ID != 0 {
				late.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	handle := cgo.NewHandle(c)
	stop := make(chan struct{})
	var churn sync.WaitGroup
	until := func(f func(i int)) {
		churn.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
				}
			}
		})
	}
	until(func(int) { c.Publish() })
	registers := 0
	until(func(i int) { // the helper, which leaves half of the handles to the threads that others keep from running
		first, pages := i*11%firstPages, 1+i%4
		if id, known := c.Identify(page(first, min(pages, firstPages-first)), verbs.AccessLocalWrite); known {
			c.Deregister(id)
			if i%8 == 0 && registers < firstHandles/2 {
				registers++
				c.Register(id)
			}
		}
	})
	until(func(i int) {
		at := i * 7 % firstPages
		pages := min(16, firstPages-at)
		r := page(at, pages)
		each := func(versions *[firstPages]uint32) func() {
			return func() {
				for k := at; k < at+pages; k++ {
					atomic.AddUint32(&versions[k], 1)
				}
			}
		}
		memory.change(r, each(&v.now), each(&v.told))
		if i%256 == 0 {
			c.SetLimits(regcache.Limits{Bytes: firstPages * int64(mem.PageSize), Regions: mem.Unlimited})
			c.SetLimits(regcache.Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited})
		}
		if i%256 == 0 {
			c.Clean()
			if err := c.Verify(); err != nil {
				t.Error(err)
			}
		}
	})
	uses, seconds := 4_000, 5
	if os.Getenv("PINWHEEL_SOAK") != "" {
		uses, seconds = 20_000, 20
	}
	run := Run{
		Cache: handle, Base: base, Pages: firstPages, Alive: &p.alive[0], Threads: 3, Iterations: uses, Seconds: seconds,
	}
	testwait.Until(t, "a C thread has registered a known region", func() bool { // one processor seldom has it
		res := First(run, p, &v.now[0])
		t.Logf("%+v, %d late", res, late.Load())
		if res.Stale+res.Wrong+res.Old+res.Failed != 0 || res.First == 0 || res.Outcomes[regcache.Hit] <= res.First {
			t.Errorf("got %+v", res)
		}
		return t.Failed() || late.Load() > 0
	})
	close(stop)
	churn.Wait()
	c.Publish()
	c.Sweep()
	t.Logf("%+v", c.Stats())
	if s := c.Stats(); s.Lingering != 0 {
		t.Errorf("nobody holds a reference, and %d registrations linger", s.Lingering)
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil || p.Usage().Regions != 0 {
		t.Errorf("close: %v; %+v left", err, p.Usage())
	}
	memory.close()
	handle.Delete()
}
