package ctable

import (
	"slices"
	"testing"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// released is a cache whose region page(0, 4) was used and deregistered.
func released(t *testing.T) (*firsts, mem.RegionID) {
	t.Helper()
	f := newFirsts(t, regcache.Options{})
	ref := f.use(page(0, 4))
	id := ref.ID() // its slot will be another's
	f.thread.Drop(ref)
	if err := f.Deregister(id); err != nil { // which publishes it
		t.Fatal(err)
	}
	f.expect(0, 0)
	return f, id
}

func TestLateUseRegistersItsRegion(t *testing.T) {
	f, id := released(t)
	o := f.take(page(1, 3)) // part of it
	if o.Range() != page(0, 4) {
		t.Errorf("%v is to be registered", o.Range())
	}
	if _, ok := f.thread.Take(page(0, 4)); ok {
		t.Error("granted again while it is on its way")
	}
	late := f.made(o, o.Range())
	f.Publish()
	if _, ok := f.thread.Take(page(0, 4)); ok {
		t.Error("granted while it is registered")
	}
	again, ok := f.thread.Hit(page(0, 4))
	if !ok || late.ID() != id || again.ID() != id {
		t.Fatalf("hit %v of region %d, used as %d, then as %d", ok, again.ID(), id, late.ID())
	}
	f.thread.Drop(again)
	f.thread.Drop(late)
	f.expect(1, 0)
	if last := f.published[len(f.published)-1]; last.Outcome != regcache.Late || last.ID != id ||
		last.Range != page(0, 4) {
		t.Errorf("published %+v", last)
	}
	for range 3 { // it may be released again, and late again
		if err := f.Deregister(id); err != nil {
			t.Fatal(err)
		}
		f.expect(0, 0)
		o := f.take(page(0, 4))
		f.thread.Drop(f.made(o, o.Range()))
		f.Publish()
		f.expect(1, 0)
	}
}

func TestLateUseThatFailsLeavesItsRegion(t *testing.T) {
	f, id := released(t)
	f.thread.Failed(f.take(page(0, 4)))
	f.Publish()
	if !f.Known(id) {
		t.Error("forgotten")
	}
	other := f.use(page(10, 4))
	if other.ID() == id {
		t.Error("another region got its ID")
	}
	f.thread.Drop(other)
	f.keepsUse(page(0, 4))
	f.expect(2, 0)
}

// The helper may register a region while its late use does.
func TestLateUseWhoseRegionIsRegisteredMeanwhileIsForOneUse(t *testing.T) {
	f, id := released(t)
	o := f.take(page(0, 4))
	if err := f.Register(id); err != nil {
		t.Fatal(err)
	}
	late := f.made(o, o.Range())
	f.Publish()
	f.expect(2, 1)
	f.thread.Drop(late)
	f.expect(1, 0)
	if ids := f.Gone(nil); slices.Contains(ids, id) || !f.Known(id) {
		t.Errorf("forgotten: %v", ids)
	}
	if ref, ok := f.thread.Hit(page(0, 4)); !ok || ref.ID() != id {
		t.Error("the helper's registration is gone")
	} else {
		f.thread.Drop(ref)
	}
}

func TestLateUseIsNoHitAfterItsMappingChanged(t *testing.T) {
	for name, change := range map[string]func(f *firsts){
		"before it is published": func(f *firsts) { f.w.publish(page(1, 1)) },
		"before it is published, dealt with": func(f *firsts) {
			f.w.publish(page(1, 1))
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, id := released(t)
			o := f.take(page(0, 4))
			change(f)
			late := f.made(o, o.Range())
			f.Publish()
			if _, ok := f.thread.Hit(page(0, 4)); ok {
				t.Error("stale")
			}
			f.IsRegistered(page(50, 1), verbs.AccessLocalWrite) // deals with the change
			f.expect(1, 1)
			f.thread.Drop(late)
			f.expect(0, 0)
			f.keepsUse(page(0, 4)) // by another region
			if f.Known(id) {
				t.Error("a region of memory that is gone is known")
			}
		})
	}
}

// A thread registers all of a region, also what it has not asked for.
func TestLateUseIsNotGrantedBeforeChangesAreDealtWith(t *testing.T) {
	f, _ := released(t)
	other := f.use(page(20, 1))
	f.w.publish(page(3, 1))
	if _, ok := f.thread.Take(page(0, 2)); ok {
		t.Error("granted a region of which part is gone")
	}
	f.Publish()
	if o := f.take(page(0, 2)); o.Range() != page(0, 2) {
		t.Errorf("%v is to be registered", o.Range())
	} else {
		f.thread.Drop(f.made(o, o.Range()))
	}
	f.thread.Drop(other)
}

// What the word of the watcher can't tell of, the cache verifies.
func TestLateUseOfAVerifiedRegionIsNotGranted(t *testing.T) {
	f := newFirsts(t, regcache.Options{})
	f.w.verify = true
	ref, _, err := f.Acquire(page(0, 4), verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	f.Release(ref)
	if err := f.Deregister(ref.ID()); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.thread.Take(page(0, 4)); ok {
		t.Error("granted")
	}
}
