package ctable

import (
	"errors"
	"runtime/cgo"
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
)

func TestFirstUseIsHitOnceItIsPublished(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	ref := f.use(page(0, 4))
	if _, ok := f.thread.Hit(page(0, 4)); ok {
		t.Error("hit before anybody has looked whether the mapping changed")
	}
	if _, ok := f.thread.Take(page(1, 2)); ok {
		t.Error("pages on their way are granted again")
	}
	f.Publish()
	again, ok := f.thread.Hit(page(1, 2))
	if !ok || again.ID() != ref.ID() || !f.Known(ref.ID()) {
		t.Fatalf("hit %v of region %d, used as %d", ok, again.ID(), ref.ID())
	}
	if _, ok := f.thread.Take(page(0, 4)); ok {
		t.Error("a known region is granted again")
	}
	f.thread.Drop(again)
	if err := f.Deregister(ref.ID()); !errors.Is(err, regcache.ErrInUse) {
		t.Errorf("deregister in use: %v", err)
	}
	f.thread.Drop(ref)
	f.expect(1, 0)
	if len(f.published) != 1 || f.published[0].Outcome != regcache.First || f.published[0].Range != page(0, 4) ||
		f.published[0].ID != ref.ID() {
		t.Errorf("published %+v", f.published)
	}
	if err := f.Deregister(ref.ID()); err != nil {
		t.Error(err)
	}
	f.expect(0, 0)
}

// A program that maps each buffer anew changes mappings all the time: this one has just been mapped next to another
// buffer, and nobody has dealt with that yet.
func TestFirstUseOfMemoryThatHasJustBeenMapped(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	other := f.use(page(0, 4))
	f.Publish()
	f.w.publish(page(4, 4))
	ref := f.use(page(4, 4))
	f.Publish()
	for _, r := range []mem.Range{page(0, 4), page(4, 4)} {
		again, ok := f.thread.Hit(r)
		if !ok {
			t.Fatalf("%v is no hit", r)
		}
		f.thread.Drop(again)
	}
	f.thread.Drop(ref)
	f.thread.Drop(other)
	f.expect(2, 0)
}

func TestFirstUseMayEndBeforeItIsPublished(t *testing.T) {
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
		"before it is published": func(f *firsts) { f.w.publish(page(1, 1)) },
		"before it is published, dealt with": func(f *firsts) {
			f.w.publish(page(1, 1))
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // publishes, too: the next one shows the rest
		},
		"after that": func(f *firsts) { f.Publish(); f.w.publish(page(1, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirsts(t, regcache.Options{})
			ref := f.use(page(0, 4))
			change(f)
			f.Publish()
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
	f.Publish()
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
		f.Publish()
	}
	f.expect(0, 0)
	if len(f.published) != 0 {
		t.Errorf("published %+v", f.published)
	}
}

func TestGrantsRunOutAndComeBack(t *testing.T) {
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
			t.Errorf("round %d: %d grants", round, len(refs))
		}
		for _, ref := range refs {
			f.thread.Drop(ref)
		}
		if n, err := f.Clean(); n != len(refs) || err != nil { // which publishes them
			t.Errorf("%d cleaned, %v", n, err)
		}
		f.expect(0, 0)
		if err := f.Invalidate(page(0, 1000)); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingIsGrantedBelowALimit(t *testing.T) {
	group := regcache.NewGroup(mem.Unlimited)
	f := newFirsts(t, regcache.Options{Group: group})
	taken := f.take(page(0, 4))
	limited := regcache.Limits{Bytes: 6 * int64(mem.PageSize), Regions: mem.Unlimited}
	if err := group.SetLimits(limited); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.thread.Take(page(10, 1)); ok {
		t.Error("granted")
	}
	if u := group.Usage(); u.Bytes != 4*int64(mem.PageSize) || u.Regions != 1 {
		t.Errorf("a registration that had begun is not accounted for: %+v", u)
	}
	if _, _, err := f.Acquire(page(10, 3), verbs.AccessLocalWrite); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("over budget: %v", err)
	}
	f.thread.Drop(f.made(taken, page(0, 4)))
	ref, _, err := f.Acquire(page(10, 3), verbs.AccessLocalWrite) // evicts it, though nobody has published it yet
	if err != nil {
		t.Fatal(err)
	}
	f.Release(ref)
	f.expect(1, 0)
	if err := group.SetLimits(regcache.Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
	f.thread.Drop(f.use(page(20, 1)))
	f.Publish()
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
	f.Publish()
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
			f.Publish()
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
	f.Publish()
	f.thread.Drop(late)
	if n := f.Stats().Lingering; n != 0 || f.p.Usage().Regions != 0 {
		t.Errorf("%d linger, %+v registered", n, f.p.Usage())
	}
}

// Memory of a device is registered by the thread that needs it, as long as that may. Nobody else can hit it.
func TestFirstUseOfDeviceMemoryIsNotKept(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.w.foreign = true
	for range 3 {
		ref := f.use(page(0, 4))
		f.Publish()
		if _, ok := f.thread.Hit(page(0, 4)); ok || f.Known(ref.ID()) {
			t.Error("kept")
		}
		f.expect(1, 1)
		f.thread.Drop(ref)
		if _, err := f.Clean(); err != nil {
			t.Error(err)
		}
		f.expect(0, 0)
	}
	if f.w.asked != 1 {
		t.Errorf("asked %d times whether it can be kept", f.w.asked)
	}
	f.w.foreign = false
	f.w.publish(page(0, 4))                             // unmapped, and memory of the process since
	f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with it
	f.keepsUse(page(0, 4))                              // new memory at the address
}

// What may be a device's, or about to be freed, is registered again by its next use.
func TestFirstUseWithoutPagesIsRegisteredAgain(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.w.absent = true
	ref := f.use(page(0, 4))
	f.Publish()
	if _, ok := f.thread.Hit(page(0, 4)); ok || !f.Known(ref.ID()) {
		t.Errorf("hit %v, known %v", ok, f.Known(ref.ID()))
	}
	f.thread.Drop(ref)
	f.expect(0, 0)
	f.w.absent = false
	f.keepsUse(page(0, 4))
}

// Nobody tells when memory becomes writable. Only a thread that tries it finds out.
func TestFirstUseDisprovesThatMemoryCannotBeRegistered(t *testing.T) {
	f := newFirsts(t, regcache.Options{Fallback: true})
	f.p.refuses = verbs.ErrNotMapped
	if _, _, err := f.Acquire(page(0, 4), verbs.AccessLocalWrite); !errors.Is(err, verbs.ErrNotMapped) {
		t.Fatal(err)
	}
	f.p.refuses = nil
	f.keepsUse(page(0, 4))
}

// Memory that was freed before the cache looked has no pages either.
func TestFirstUseThatWasFreedIsNotTakenForDeviceMemory(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.w.foreign = true // as there is nothing now
	ref := f.use(page(0, 4))
	f.w.publish(page(0, 4))
	f.Publish()
	f.thread.Drop(ref)
	if f.w.asked != 0 {
		t.Error("the watcher was asked for memory that was freed")
	}
	f.w.foreign = false
	if again, _, err := f.Acquire(page(0, 4), verbs.AccessLocalWrite); err != nil || again.ID() == 0 {
		t.Errorf("new memory at the address is not kept: %v", err)
	} else {
		f.Release(again)
	}
}

// TestKernelTellsOfChangesAfterAGrant has BPF programs watch what a C thread counts itself into.
func TestKernelTellsOfChangesAfterAGrant(t *testing.T) {
	testwait.Bound(t)
	w, err := vmwatch.Open(vmwatch.Options{Mechanism: "bpf"})
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	p := newProvider(t)
	c, err := regcache.New(p, regcache.Options{Watcher: w, OnPublish: func(regcache.Published) {},
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
	for _, when := range []string{"never", "while it is registered", "before it is published"} {
		m, err := unix.MmapPtr(-1, 0, nil, bytes, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE) // as a device leaves it
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
			const rights = unix.PROT_READ | unix.PROT_WRITE
			if _, err := unix.MmapPtr(-1, 0, last, uintptr(mem.PageSize), rights, fixed); err != nil {
				t.Fatal(err)
			}
		}
		var o Grant
		testwait.Until(t, "a grant", func() (ok bool) { // none while the word has moved for others in these granules
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite)
			o, ok = f.thread.Take(r)
			return ok
		})
		change("while it is registered")
		ref := f.made(o, r)
		change("before it is published")
		c.Publish()
		hit, ok := f.thread.Hit(r)
		if ok != (when == "never") {
			t.Errorf("mapping changed %s: hit %v", when, ok)
		}
		if ok {
			f.thread.Drop(hit)
			f.hitsBesideAChange(w, r)
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
