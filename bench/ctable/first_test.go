package ctable

import (
	"errors"
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
	"pinwheel/vmwatch"
)

const (
	firstPages   = 64
	firstHandles = 1 << 20
	granule      = 2 << 20
	granules     = 1 << 16
)

// outside returns zeroed memory outside the Go heap.
func outside[T any](t *testing.T) *T {
	var zero T
	m, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(zero)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	return (*T)(unsafe.Pointer(&m[0]))
}

// watcher has the log of a kernel that tests change mappings in.
type watcher struct {
	word     *uint64
	interest *[granules]uint32
	refuses  func() error // Watch; nil: it doesn't
	verify   bool         // by Watch

	mu  sync.Mutex
	log []mem.Range
	at  int // Drain
}

func newWatcher(t *testing.T) *watcher {
	return &watcher{word: outside[uint64](t), interest: outside[[granules]uint32](t)}
}

func (w *watcher) count(r mem.Range, n uint32) {
	for g := uint64(r.Start) / granule; g <= (uint64(r.End)-1)/granule; g++ {
		atomic.AddUint32(&w.interest[g%granules], n)
	}
}

// publish tells of a change, as the kernel does before it makes one and after.
func (w *watcher) publish(r mem.Range) {
	for g := uint64(r.Start) / granule; g <= (uint64(r.End)-1)/granule; g++ {
		if atomic.LoadUint32(&w.interest[g%granules]) != 0 {
			w.mu.Lock()
			w.log = append(w.log, r)
			atomic.AddUint64(w.word, 1)
			w.mu.Unlock()
			return
		}
	}
}

func (w *watcher) Word() *uint64     { return w.word }
func (w *watcher) Interest() *uint32 { return &w.interest[0] }
func (w *watcher) Watch(r mem.Range) (uint64, bool, error) {
	if w.refuses != nil {
		return 0, false, w.refuses()
	}
	w.count(r, 1)
	return uint64(r.Start)<<8 | r.Len()/uint64(mem.PageSize), w.verify, nil
}
func (w *watcher) Pinning(uint64)        {}
func (w *watcher) Pinned(uint64) error   { return nil }
func (w *watcher) Unchanged(uint64) bool { return true }
func (w *watcher) Unwatch(token uint64) {
	start := mem.Addr(token >> 8)
	w.Uninterest(mem.Range{Start: start, End: start + mem.Addr(token&0xff)*mem.Addr(mem.PageSize)})
}
func (w *watcher) Uninterest(r mem.Range) { w.count(r, ^uint32(0)) }
func (w *watcher) Drain(drop func(mem.Range)) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; w.at < len(w.log); w.at++ {
		drop(w.log[w.at])
	}
	return uint64(w.at)
}
func (w *watcher) ChangedSince(generation uint64, r mem.Range) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.log[min(generation, uint64(len(w.log))):] {
		if o.Overlaps(r) {
			return true
		}
	}
	return false
}

// interested adds up all counts.
func (w *watcher) interested() (n uint32) {
	for i := range w.interest {
		n += atomic.LoadUint32(&w.interest[i])
	}
	return n
}

// firsts is a cache whose C threads register first uses, with one such thread.
type firsts struct {
	*regcache.Cache
	t       *testing.T
	p       *provider
	w       *watcher
	thread  *Thread
	adopted []regcache.Adopted
}

func newFirsts(t *testing.T, o regcache.Options) *firsts {
	testwait.Bound(t)
	f := &firsts{t: t, p: newProvider(t), w: newWatcher(t)}
	o.Watcher = f.w
	o.MaxBytes, o.MaxRegions = mem.Unlimited, mem.Unlimited
	o.OnAdopt = func(a regcache.Adopted) { f.adopted = append(f.adopted, a) }
	var err error
	if f.Cache, err = regcache.New(f.p, o); err != nil {
		t.Fatal(err)
	}
	handle := cgo.NewHandle(f.Cache)
	f.thread = OpenThread(handle)
	t.Cleanup(func() {
		f.thread.Close()
		handle.Delete()
		if err := f.Close(); err != nil || f.p.Usage().Regions != 0 {
			t.Errorf("close: %v; %+v left", err, f.p.Usage())
		}
		if n := f.w.interested(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
	return f
}

func page(first, n int) mem.Range {
	at := func(n int) mem.Addr { return base + mem.Addr(n)*mem.Addr(mem.PageSize) }
	return mem.Range{Start: at(first), End: at(first + n)}
}

// take takes an offer, which there must be.
func (f *firsts) take(r mem.Range) Offer {
	f.t.Helper()
	o, ok := f.thread.Take(r)
	if !ok {
		f.t.Fatalf("nothing is offered for %v", r)
	}
	return o
}

// use registers a first use of r.
func (f *firsts) use(r mem.Range) Ref {
	f.t.Helper()
	o := f.take(r)
	return f.made(o, r)
}

func (f *firsts) made(o Offer, r mem.Range) Ref {
	g, err := f.p.Register(r, verbs.AccessLocalWrite)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.thread.Made(o, g.Handle)
}

func (f *firsts) expect(pinned, lingering int) {
	f.t.Helper()
	if err := f.Verify(); err != nil {
		f.t.Error(err)
	}
	if s := f.Stats(); int(s.Pinned.Regions) != pinned || s.Lingering != lingering || int(f.p.Usage().Regions) != pinned {
		f.t.Errorf("%d pinned, %d with the provider, %d linger; want %d and %d", s.Pinned.Regions, f.p.Usage().Regions,
			s.Lingering, pinned, lingering)
	}
}

func TestFirstUseIsHitOnceItIsAdopted(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	ref := f.use(page(0, 4))
	if _, ok := f.thread.Hit(page(0, 4)); ok {
		t.Error("hit before anybody has looked whether the mapping changed")
	}
	if _, ok := f.thread.Take(page(1, 2)); ok {
		t.Error("pages on their way are offered again")
	}
	f.Adopt()
	again, ok := f.thread.Hit(page(1, 2))
	if !ok || again.ID() != ref.ID() || !f.Known(ref.ID()) {
		t.Fatalf("hit %v of region %d, used as %d", ok, again.ID(), ref.ID())
	}
	if _, ok := f.thread.Take(page(0, 4)); ok {
		t.Error("a known region is offered again")
	}
	f.thread.Drop(again)
	if err := f.Deregister(ref.ID()); !errors.Is(err, regcache.ErrInUse) {
		t.Errorf("deregister in use: %v", err)
	}
	f.thread.Drop(ref)
	f.expect(1, 0)
	if len(f.adopted) != 1 || f.adopted[0].Outcome != regcache.First || f.adopted[0].Range != page(0, 4) || f.adopted[0].ID != ref.ID() {
		t.Errorf("adopted %+v", f.adopted)
	}
	if err := f.Deregister(ref.ID()); err != nil {
		t.Error(err)
	}
	f.expect(0, 0)
}

func TestFirstUseMayEndBeforeItIsAdopted(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	ref := f.use(page(0, 1))
	id := ref.ID()
	f.thread.Drop(ref)
	if err := f.Deregister(id); err != nil { // by the helper, which has heard of the use
		t.Error(err)
	}
	f.expect(0, 0)
}

func TestFirstUseIsNoHitAfterItsMappingChanged(t *testing.T) {
	for name, change := range map[string]func(f *firsts){
		"before adoption": func(f *firsts) { f.w.publish(page(1, 1)) },
		"before adoption, dealt with": func(f *firsts) {
			f.w.publish(page(1, 1))
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // adopts, too: the next one shows the rest
		},
		"after adoption": func(f *firsts) { f.Adopt(); f.w.publish(page(1, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirsts(t, regcache.Options{})
			ref := f.use(page(0, 4))
			change(f)
			f.Adopt()
			if _, ok := f.thread.Hit(page(0, 4)); ok {
				t.Error("stale")
			}
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with the change
			if _, ok := f.thread.Hit(page(0, 4)); ok {
				t.Error("stale, once the change is dealt with")
			}
			f.expect(1, 1)
			f.thread.Drop(ref)
			f.expect(0, 0)
		})
	}
}

// The cache deals with a change while it does not know of the registration yet.
func TestChangeDuringARegistrationIsNotForgotten(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	o := f.take(page(0, 4))
	g, err := f.p.Register(page(0, 4), verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	f.w.publish(page(1, 1))
	f.IsRegistered(page(50, 1), verbs.AccessLocalWrite)
	ref := f.thread.Made(o, g.Handle)
	f.Adopt()
	if _, ok := f.thread.Hit(page(0, 4)); ok {
		t.Error("stale")
	}
	f.thread.Drop(ref)
	f.expect(0, 0)
}

func TestFailedFirstUseLeavesNothing(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	for range 100 {
		f.thread.Failed(f.take(page(0, 4)))
		f.Adopt()
	}
	f.expect(0, 0)
	if len(f.adopted) != 0 {
		t.Errorf("adopted %+v", f.adopted)
	}
}

func TestOffersRunOutAndComeBack(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	for round := range 3 {
		var refs []Ref
		for i := 0; ; i++ {
			o, ok := f.thread.Take(page(8*i, 4))
			if !ok {
				break
			}
			refs = append(refs, f.made(o, page(8*i, 4)))
		}
		if len(refs) != 16 {
			t.Errorf("round %d: %d offers", round, len(refs))
		}
		for _, ref := range refs {
			f.thread.Drop(ref)
		}
		if n, err := f.Clean(); n != len(refs) || err != nil { // which adopts them
			t.Errorf("%d cleaned, %v", n, err)
		}
		f.expect(0, 0)
		if err := f.Invalidate(page(0, 1000)); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingIsOfferedBelowALimit(t *testing.T) {
	group := regcache.NewGroup(mem.Unlimited)
	f := newFirsts(t, regcache.Options{Group: group})
	taken := f.take(page(0, 4))
	limited := regcache.Limits{Bytes: 6 * int64(mem.PageSize), Regions: mem.Unlimited}
	if err := group.SetLimits(limited); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.thread.Take(page(10, 1)); ok {
		t.Error("offered")
	}
	if u := group.Usage(); u.Bytes != 4*int64(mem.PageSize) || u.Regions != 1 {
		t.Errorf("a registration that had begun is not accounted for: %+v", u)
	}
	if _, _, err := f.Acquire(page(10, 3), verbs.AccessLocalWrite); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("over budget: %v", err)
	}
	f.thread.Drop(f.made(taken, page(0, 4)))
	ref, _, err := f.Acquire(page(10, 3), verbs.AccessLocalWrite) // evicts it, though nobody has adopted it yet
	if err != nil {
		t.Fatal(err)
	}
	f.Release(ref)
	f.expect(1, 0)
	if err := group.SetLimits(regcache.Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
	f.thread.Drop(f.use(page(20, 1)))
	f.Adopt()
	f.expect(2, 0)
}

func TestFirstUseWhoseRangeAnotherTookMeanwhileIsForOneUse(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	o := f.take(page(0, 4))
	other, _, err := f.Acquire(page(0, 4), verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	ref := f.made(o, page(0, 4))
	f.Adopt()
	f.expect(2, 1)
	f.Release(other)
	f.thread.Drop(ref)
	f.expect(1, 0)
}

func TestFirstUseThatCantBeWatched(t *testing.T) {
	for name, set := range map[string]func(w *watcher){
		"at all":                func(w *watcher) { w.refuses = func() error { return errors.New("seeded") } },
		"because of a fault":    func(w *watcher) { w.refuses = func() error { panic("seeded") } },
		"by notification alone": func(w *watcher) { w.verify = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirsts(t, regcache.Options{})
			set(f.w)
			ref := f.use(page(0, 4))
			f.Adopt()
			if _, ok := f.thread.Hit(page(0, 4)); ok {
				t.Error("hit")
			}
			f.expect(1, 1)
			f.thread.Drop(ref)
			f.expect(0, 0)
			if f.Known(ref.ID()) != f.w.verify {
				t.Errorf("known %v: a region that can be verified is registered by the next use", f.Known(ref.ID()))
			}
		})
	}
}

func TestClosedCacheTakesBackWhatComesLate(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	o := f.take(page(0, 4))
	ref := f.use(page(8, 4))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if n := f.Stats().Lingering; n != 2 {
		t.Errorf("%d linger: one in use, one on its way", n)
	}
	f.thread.Drop(ref)
	late := f.made(o, page(0, 4))
	f.Adopt()
	f.thread.Drop(late)
	if n := f.Stats().Lingering; n != 0 || f.p.Usage().Regions != 0 {
		t.Errorf("%d linger, %+v registered", n, f.p.Usage())
	}
}

// TestKernelTellsOfChangesAfterAnOffer has BPF programs watch what a C thread counts itself into.
func TestKernelTellsOfChangesAfterAnOffer(t *testing.T) {
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf"})
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	p := newProvider(t)
	c, err := regcache.New(p, regcache.Options{Watcher: w, OnAdopt: func(regcache.Adopted) {},
		MaxBytes: mem.Unlimited, MaxRegions: mem.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	f := &firsts{Cache: c, t: t, p: p}
	handle := cgo.NewHandle(c)
	defer handle.Delete()
	f.thread = OpenThread(handle)
	f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with what happened before
	const bytes = 5 << 20                               // some granules
	for _, when := range []string{"never", "while it is registered", "before it is adopted"} {
		m, err := unix.MmapPtr(-1, 0, nil, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		r := mem.Range{Start: mem.Addr(uintptr(m)), End: mem.Addr(uintptr(m)) + bytes}
		change := func(at string) {
			const fixed = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_FIXED
			if at != when {
				return
			}
			last := unsafe.Add(m, bytes-int(mem.PageSize)) // in its last granule
			if _, err := unix.MmapPtr(-1, 0, last, uintptr(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, fixed); err != nil {
				t.Fatal(err)
			}
		}
		o := f.take(r)
		change("while it is registered")
		ref := f.made(o, r)
		change("before it is adopted")
		c.Adopt()
		hit, ok := f.thread.Hit(r)
		if ok != (when == "never") {
			t.Errorf("mapping changed %s: hit %v", when, ok)
		}
		if ok {
			f.thread.Drop(hit)
		}
		f.thread.Drop(ref)
		if err := unix.MunmapPtr(m, bytes); err != nil {
			t.Fatal(err)
		}
		f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with it
		if err := c.Invalidate(r); err != nil {             // the same addresses are to be a first use again
			t.Error(err)
		}
		f.expect(0, 0)
	}
	f.thread.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

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
	testwait.Bound(t)
	for _, anyCovering := range []bool{false, true} {
		v := outside[pageVersions](t)
		p, w := versioned{newProvider(t), v}, newWatcher(t)
		c, err := regcache.New(p, regcache.Options{
			AnyCovering: anyCovering, Watcher: w, MaxBytes: mem.Unlimited, MaxRegions: mem.Unlimited,
			OnAdopt: func(regcache.Adopted) {},
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
		until(func(int) { c.Adopt() })
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
			id := mem.RegionID(i)
			c.Deregister(id)
			c.Register(id / 2)
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
		res := First(Run{Cache: handle, Base: base, Pages: firstPages, Alive: &p.alive[0], Threads: 3, Iterations: 20_000}, p, &v.now[0])
		close(stop)
		churn.Wait()
		c.Adopt()
		c.Sweep()
		t.Logf("%+v, %+v", res, c.Stats())
		if s := c.Stats(); s.Lingering != 0 {
			t.Errorf("nobody holds a reference, and %d registrations linger", s.Lingering)
		}
		if res.Stale+res.Wrong+res.Old+res.Failed != 0 || res.First == 0 || res.Outcomes[regcache.Hit] <= res.First {
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
