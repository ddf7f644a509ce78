package ctable

import (
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
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

// TestFirstUsesAreNeverStale has C threads register first uses while mappings change, limits come and go,
// and a helper registers and deregisters.
func TestFirstUsesAreNeverStale(t *testing.T) {
	testwait.SkipUnderRace(t, "its threads are of C, which make test-sanitize looks at")
	testwait.Bound(t)
	for _, anyCovering := range []bool{false, true} {
		v := outside[pageVersions](t)
		p, w := versioned{newProvider(t), v}, newWatcher(t)
		var late atomic.Int64 // known regions that a C thread has registered
		c, err := regcache.New(p, regcache.Options{
			AnyCovering: anyCovering, Watcher: w, MaxBytes: mem.Unlimited, MaxRegions: mem.Unlimited,
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
			each := func(versions *[firstPages]uint32) {
				for k := at; k < at+pages; k++ {
					atomic.AddUint32(&versions[k], 1)
				}
			}
			w.publish(r)
			each(&v.now)
			w.publish(r)
			each(&v.told)
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
		run := Run{
			Cache: handle, Base: base, Pages: firstPages, Alive: &p.alive[0], Threads: 3, Iterations: 20_000, Seconds: 20,
		}
		res := First(run, p, &v.now[0])
		close(stop)
		churn.Wait()
		c.Publish()
		c.Sweep()
		t.Logf("%+v, %d late, %+v", res, late.Load(), c.Stats())
		if s := c.Stats(); s.Lingering != 0 {
			t.Errorf("nobody holds a reference, and %d registrations linger", s.Lingering)
		}
		if res.Stale+res.Wrong+res.Old+res.Failed != 0 || res.First == 0 || late.Load() == 0 || res.Outcomes[regcache.Hit] <= res.First {
			t.Errorf("got %+v", res)
		}
		if err := c.Verify(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil || p.Usage().Regions != 0 || w.interested() != 0 {
			t.Errorf("close: %v; %+v left, %d watches", err, p.Usage(), w.interested())
		}
		handle.Delete()
	}
}
