package ctable

import (
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// A hit looks at what has changed by itself, while the cache has not dealt with that.
func TestHitBesideAChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *firsts)
		hits   []mem.Range
		misses []mem.Range
	}{
		"of other memory": {func(f *firsts) { f.w.publish(page(8, 8)) }, []mem.Range{page(0, 8), page(1, 6)}, nil},
		"of a part": {func(f *firsts) { f.w.publish(page(6, 10)) }, []mem.Range{page(0, 6), page(1, 5)},
			[]mem.Range{page(0, 8), page(6, 1), page(7, 1), page(5, 2)}},
		"of everything": {func(f *firsts) { f.w.publish(mem.Range{Start: 0, End: ^mem.Addr(0)}) }, nil, []mem.Range{page(0, 8), page(1, 6)}},
		"the last of several": {func(f *firsts) {
			for i := range 15 {
				f.w.publish(page(8+i, 1))
			}
			f.w.publish(page(0, 1))
		}, []mem.Range{page(1, 7)}, []mem.Range{page(0, 8)}},
		"of other memory, many times": {func(f *firsts) {
			for range 17 {
				f.w.publish(page(8, 8))
			}
		}, nil, []mem.Range{page(0, 8), page(1, 6)}},
		"that is not written yet": {func(f *firsts) {
			f.w.unwritten = true
			f.w.publish(page(8, 8))
			f.w.unwritten = false
		}, nil, []mem.Range{page(0, 8), page(1, 6)}},
		"once the log has gone round": {func(f *firsts) {
			for range 4097 {
				f.w.publish(page(8, 8))
			}
		}, nil, []mem.Range{page(0, 8)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFirsts(t, regcache.Options{})
			f.keepsUse(page(0, 8))
			c.change(f)
			for _, r := range c.hits {
				if ref, ok := f.thread.Hit(r); !ok {
					t.Errorf("%v is no hit", r)
				} else {
					f.thread.Drop(ref)
				}
			}
			for _, r := range c.misses {
				if _, ok := f.thread.Hit(r); ok {
					t.Errorf("%v is a hit", r)
				}
			}
		})
	}
}

func TestNothingIsHitBesideAChangeOnceTheCacheIsClosed(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.keepsUse(page(0, 8))
	f.w.publish(page(8, 8))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.thread.Hit(page(0, 8)); ok {
		t.Error("hit")
	}
}

// The helper asks what is gone at each look.
func TestWhatIsGoneIsReleasedThoughEverythingHits(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.keepsUse(page(0, 4))
	gone := f.use(page(8, 4))
	f.Publish()
	f.thread.Drop(gone)
	f.expect(2, 0)
	f.w.publish(page(8, 4))
	if ref, ok := f.thread.Hit(page(0, 4)); !ok {
		t.Fatal("no hit")
	} else {
		f.thread.Drop(ref)
	}
	f.expect(2, 0)
	if ids := f.Gone(nil); len(ids) != 1 || ids[0] != gone.ID() {
		t.Errorf("gone: %v, want region %d", ids, gone.ID())
	}
	f.expect(1, 0)
}

// A thread registers an absent region by itself whatever has changed beside it, but see
// TestLateUseIsNotGrantedBeforeChangesAreDealtWith.
func TestLateUseBesideAChange(t *testing.T) {
	f, id := released(t)
	other := f.use(page(20, 1))
	f.w.publish(page(21, 1))
	late := f.take(page(0, 2))
	if late.Range() != page(0, 4) {
		t.Errorf("%v is to be registered", late.Range())
	}
	ref := f.made(late, late.Range())
	f.Publish()
	if ref.ID() != id || !f.Known(id) {
		t.Errorf("registered as region %d, which is %d", ref.ID(), id)
	}
	f.thread.Drop(ref)
	f.thread.Drop(other)
}

// hitsBesideAChange has other memory come and go, of which the kernel's log tells.
func (f *firsts) hitsBesideAChange(w *vmwatch.Watcher, r mem.Range) {
	f.t.Helper()
	const large = 64 << 20                                          // as much as counts as watched, wherever it is
	testwait.Until(f.t, "a hit beside a change", func() (ok bool) { // or others change more than a hit looks at
		f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with what happened before
		before := w.Generation()
		m, err := unix.MmapPtr(-1, 0, nil, large, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			f.t.Fatal(err)
		}
		if err := unix.MunmapPtr(m, large); err != nil {
			f.t.Fatal(err)
		}
		hit, ok := f.thread.Hit(r)
		if ok {
			f.thread.Drop(hit)
		}
		if w.Generation() == before {
			f.t.Fatal("the kernel does not tell of large mappings")
		}
		return ok
	})
}
