package regcache

import (
	"errors"
	"syscall"
	"testing"

	"go.uber.org/atomic"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/vmwatch"
)

// device is a provider that refuses some memory, and counts how often it is asked.
type device struct {
	*sim.Provider
	refuses func(r mem.Range, a verbs.Access) error
	tries   atomic.Int64
}

func (d *device) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	d.tries.Inc()
	if d.refuses != nil {
		if err := d.refuses(r, a); err != nil {
			return verbs.Region{}, err
		}
	}
	return d.Provider.Register(r, a)
}

// tried returns how often the device was asked since the last call.
func (d *device) tried() int64 { return d.tries.Swap(0) }

// readOnly refuses rights to write.
func readOnly(r mem.Range, a verbs.Access) error {
	if a&write != 0 {
		return verbs.Fail("register", r, syscall.EFAULT)
	}
	return nil
}

func newRefusing(t *testing.T, o Options) (*fixture, *device) {
	d := &device{Provider: sim.New(sim.Options{})}
	return newFixtureOver(t, d, d.Provider, o), d
}

func TestDeviceMemoryIsRegisteredForEachUse(t *testing.T) {
	w := newWatcher(t)
	w.foreign = func(r mem.Range) bool { return r.Overlaps(span(0, 16)) }
	fx, d := newRefusing(t, Options{Watcher: w})
	id := fx.use(span(50, 4), both, First)
	d.tried()
	for i, want := range []int64{2, 1, 1, 1} { // the first finds out that it can't be kept
		ref := fx.get(span(0, 16), []verbs.Access{both, both, read, both}[i], []Outcome{First, Late, Late, Late}[i])
		if ref.ID() != 0 {
			t.Error("it has a region")
		}
		fx.put(ref)
		if got := d.tried(); got != want || d.Usage().Regions != 1 {
			t.Errorf("use %d: registered %d times, want %d; %+v kept", i, got, want, d.Usage())
		}
	}
	if _, known := fx.Identify(span(0, 16), both); known || len(w.watched) != 2 {
		t.Errorf("the helper would hear of it: %v; %d watched", known, len(w.watched))
	}
	if got := fx.use(span(50, 4), both, Hit); got != id {
		t.Error("another buffer is no hit any more")
	}

	w.foreign = nil
	w.change(span(0, 16)) // unmapped, and memory of the process since
	if id := fx.use(span(0, 16), both, First); id == 0 {
		t.Error("new memory at the address is not kept")
	}
	fx.use(span(0, 16), both, Hit)
	if got := d.tried(); got != 1 {
		t.Errorf("registered %d times, want 1", got)
	}
}

func TestMemoryThatMayBeADevicesIsRegisteredAgain(t *testing.T) {
	w := newWatcher(t)
	fx, d := newRefusing(t, Options{Watcher: w})
	w.absent = 1
	if fx.use(span(0, 16), both, First) == 0 {
		t.Error("not kept")
	}
	fx.use(span(0, 16), both, Hit)
	if got := d.tried(); got != 2 || d.Usage().Regions != 1 {
		t.Errorf("registered %d times, %+v kept", got, d.Usage())
	}
	w.absent = 2 // it changes all the time
	if fx.use(span(20, 16), both, First) != 0 {
		t.Error("kept")
	}
	if got := d.tried(); got != 3 || d.Usage().Regions != 1 {
		t.Errorf("registered %d times, %+v kept", got, d.Usage())
	}
}

func TestBufferBesideDeviceMemoryIsKept(t *testing.T) {
	w := newWatcher(t)
	w.foreign = func(r mem.Range) bool { return r.Overlaps(span(8, 8)) }
	fx, _ := newRefusing(t, Options{Watcher: w})
	fx.use(span(0, 8), both, First)
	if fx.use(span(2, 8), both, First) != 0 { // for which the first would grow
		t.Error("device memory was kept")
	}
	if fx.use(span(0, 8), both, Late) == 0 {
		t.Error("the buffer beside it is not kept any more")
	}
	fx.use(span(0, 8), both, Hit)
}

func TestWatcherAcceptsARegionOnceUntilItsMappingChanges(t *testing.T) {
	w := newWatcher(t)
	fx, _ := newRefusing(t, Options{Watcher: w})
	for round := 1; round <= 3; round++ {
		id := fx.use(span(0, 16), both, First)
		for range 5 {
			if err := errors.Join(fx.Deregister(id), fx.Register(id)); err != nil {
				t.Fatal(err)
			}
		}
		if w.asked != round {
			t.Errorf("asked %d times in %d mappings", w.asked, round)
		}
		w.change(span(0, 16))
	}
}

func TestHelperKeepsNoDeviceMemory(t *testing.T) {
	w := newWatcher(t)
	fx, d := newRefusing(t, Options{Watcher: w})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Fatal(err)
	}
	w.change(span(0, 16))
	w.foreign = func(mem.Range) bool { return true }
	if err := fx.Register(id); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	id, _ = fx.Identify(span(0, 16), both)
	if err := fx.Register(id); !errors.Is(err, ErrUnknown) || d.Usage().Regions != 0 {
		t.Errorf("%v, %+v", err, d.Usage())
	}
	d.tried()
	fx.use(span(0, 16), both, First)
	if n := d.tried(); n != 1 {
		t.Errorf("a use after the helper found out registered %d times", n)
	}
}

func TestMemoryThatCannotBeRegisteredIsNotTriedAtEachUse(t *testing.T) {
	for _, fallback := range []bool{true, false} {
		w := newWatcher(t)
		fx, d := newRefusing(t, Options{Watcher: w, Fallback: fallback})
		d.refuses = readOnly
		const uses = 2*refusedUses - 10
		for range uses {
			_, _, err := fx.f.Acquire(span(0, 16), both)
			if !errors.Is(err, verbs.ErrNotMapped) || !errors.Is(err, syscall.EFAULT) {
				t.Fatal(err)
			}
			fx.check()
		}
		want := int64(uses) // without a fallback, the caller wants to know how it is now
		if fallback {
			want = 2
		}
		if got := d.tried(); got != want {
			t.Errorf("fallback %v: tried %d times in %d uses", fallback, got, uses)
		}
		id := fx.use(span(0, 16), read, First) // what it permits is kept
		if _, _, err := fx.f.Acquire(span(0, 16), both); fallback && err == nil {
			t.Error("registered for writing")
		}
		if got := fx.use(span(0, 16), read, map[bool]Outcome{true: Hit, false: Late}[fallback]); fallback && got != id {
			t.Error("reading is no hit any more")
		}
	}
}

func TestRefusalEndsWithItsMappingOrOnceItIsDisproved(t *testing.T) {
	w := newWatcher(t)
	fx, d := newRefusing(t, Options{Watcher: w, Fallback: true})
	refuse := func() {
		t.Helper()
		d.refuses = readOnly
		for range 3 {
			if _, _, err := fx.f.Acquire(span(0, 16), both); err == nil {
				t.Fatal("not refused")
			}
		}
		d.refuses = nil
	}
	refuse()
	w.change(span(3, 1))
	fx.use(span(0, 16), both, First)
	w.change(span(3, 1))
	refuse() // and then mprotect(2), of which nobody hears
	tries := 0
	for ; ; tries++ {
		ref, _, err := fx.f.Acquire(span(0, 16), both)
		if err == nil {
			fx.put(ref)
			break
		}
	}
	if tries > refusedUses {
		t.Errorf("refused for %d uses", tries)
	}
	fx.use(span(0, 16), both, Hit)
	if len(fx.refusals) != 0 {
		t.Errorf("%d refusals are left", len(fx.refusals))
	}
}

func TestWhatWasFoundOutLastCounts(t *testing.T) {
	w := newWatcher(t)
	fx, d := newRefusing(t, Options{Watcher: w, Fallback: true})
	d.refuses = readOnly
	if _, _, err := fx.f.Acquire(span(0, 16), both); err == nil {
		t.Fatal("not refused")
	}
	d.refuses = nil // a device's memory now, of which nobody hears
	w.foreign = func(mem.Range) bool { return true }
	registered := 0
	for range 2 * refusedUses {
		if ref, _, err := fx.f.Acquire(span(0, 16), both); err == nil {
			fx.put(ref)
			registered++
		} else if registered > 0 {
			t.Fatalf("refused again: %v", err)
		}
	}
	if registered < refusedUses {
		t.Errorf("%d of %d uses", registered, 2*refusedUses)
	}
}

func TestRightsOfEarlierUsesDoNotKeepMemoryFromBeingRegistered(t *testing.T) {
	w := newWatcher(t)
	fx, d := newRefusing(t, Options{Watcher: w})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Fatal(err)
	}
	d.refuses = readOnly // by mprotect(2)
	fx.use(span(0, 16), read, Late)
	fx.use(span(0, 16), read, Hit)
}

func TestRefusalsAreBoundedAndTheirWatchesEnd(t *testing.T) {
	w := newWatcher(t)
	d := &device{Provider: sim.New(sim.Options{}), refuses: readOnly}
	c, err := New(d, Options{Watcher: w, Fallback: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2 * maxRefusals) {
		if _, _, err := c.Acquire(span(2*i, 1), both); err == nil {
			t.Fatal("not refused")
		}
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	if n := len(c.refusals); n != maxRefusals || len(w.watched) != n {
		t.Errorf("%d refusals, %d watches", n, len(w.watched))
	}
	if err := c.Close(); err != nil || len(w.watched) != 0 {
		t.Errorf("%v; %d are watched still", err, len(w.watched))
	}
}

// A mapping without access, as what CUDA gives for memory of a GPU, and a device that registers all there is.
func TestMappingWithoutPagesIsNeverKept(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "pfn", "uffd"} {
		t.Run(m, func(t *testing.T) {
			w, err := vmwatch.Open(vmwatch.Options{Mechanism: m})
			if err != nil {
				t.Skip(err)
			}
			defer w.Close()
			d := &device{Provider: sim.New(sim.Options{})}
			c, err := New(d, Options{Watcher: w})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			const bytes = 1 << 20
			at, err := unix.MmapPtr(-1, 0, nil, bytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.MunmapPtr(at, bytes)
			r := mem.Range{Start: mem.Addr(uintptr(at)), End: mem.Addr(uintptr(at)) + bytes}
			use := func() (kept bool) {
				t.Helper()
				ref, _, err := c.Acquire(r, both)
				if err != nil {
					t.Fatal(err)
				}
				c.Release(ref)
				return d.Usage().Regions > 0
			}
			for range 3 {
				if use() {
					t.Fatal("kept")
				}
			}
			d.tried()
			if use(); d.tried() != 1 {
				t.Error("registered more than once for one use")
			}
			const fixed = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_FIXED | unix.MAP_POPULATE
			if _, err := unix.MmapPtr(-1, 0, at, bytes, unix.PROT_READ|unix.PROT_WRITE, fixed); err != nil {
				t.Fatal(err)
			}
			if !use() && m != "pfn" { // which tells of nothing, so that this takes some uses
				t.Error("memory that was mapped there since is not kept")
			}
		})
	}
}
