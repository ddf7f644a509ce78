package ctable

import (
	"runtime/cgo"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// firsts is a cache whose C threads register first uses, with one such thread.
type firsts struct {
	*regcache.Cache
	t         *testing.T
	p         *provider
	w         *watcher
	thread    *Thread
	published []regcache.Published
}

func newFirsts(t *testing.T, o regcache.Options) *firsts {
	testwait.Bound(t)
	f := &firsts{t: t, p: newProvider(t), w: newWatcher(t)}
	o.Watcher = f.w
	o.MaxBytes, o.MaxRegions = mem.Unlimited, mem.Unlimited
	o.OnPublish = func(a regcache.Published) { f.published = append(f.published, a) }
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

// take takes a grant, which there must be.
func (f *firsts) take(r mem.Range) Grant {
	f.t.Helper()
	o, ok := f.thread.Take(r)
	if !ok {
		f.t.Fatalf("nothing is granted for %v", r)
	}
	return o
}

// use registers a first use of r.
func (f *firsts) use(r mem.Range) Ref {
	f.t.Helper()
	o := f.take(r)
	return f.made(o, r)
}

func (f *firsts) made(o Grant, r mem.Range) Ref {
	g, err := f.p.Register(r, verbs.AccessLocalWrite)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.thread.Made(o, g.Handle)
}

// keepsUse has a first use of r that the next one hits.
func (f *firsts) keepsUse(r mem.Range) {
	f.t.Helper()
	ref := f.use(r)
	f.Publish()
	again, ok := f.thread.Hit(r)
	if !ok {
		f.t.Fatalf("the registration of %v is not kept", r)
	}
	f.thread.Drop(again)
	f.thread.Drop(ref)
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
