//go:build linux && cgo

package rc_test

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/verbstest"
	"pinwheel/vmwatch"
)

const oldByte, newByte = 'o', 'n'

// TestCanary registers memory, maps other memory at the same address, and
// sends from there. What arrives tells which pages the device took.
func TestCanary(t *testing.T) {
	for _, c := range []struct {
		name string
		// keep returns the local key to send with after the change.
		keep func(t *testing.T, p verbs.Provider, r mem.Range, change func()) uint32
		want byte
	}{
		// The bug that everything here is about: a registration outlives its mapping.
		{"without protection the old bytes arrive", func(t *testing.T, p verbs.Provider, r mem.Range, change func()) uint32 {
			g, err := p.Register(r, 0)
			if err != nil {
				t.Fatal(err)
			}
			change()
			return g.LKey
		}, oldByte},
		{"a cache that nobody told keeps them too", func(t *testing.T, p verbs.Provider, r mem.Range, change func()) uint32 {
			return throughCache(t, p, r, nil, func(*regcache.Cache) { change() })
		}, oldByte},
		{"a cache that is told sends the new bytes", func(t *testing.T, p verbs.Provider, r mem.Range, change func()) uint32 {
			return throughCache(t, p, r, nil, func(cache *regcache.Cache) {
				if err := cache.Invalidate(r); err != nil {
					t.Fatal(err)
				}
				change()
			})
		}, newByte},
		{"a cache under a watch that uses BPF", watched("bpf"), newByte},
		{"a cache under a watch without privilege", watched("uffd"), newByte},
		{"a cache under a watch that compares pages", watched("pfn"), newByte},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			there := newBuffer(t, b.p, 16*mem.PageSize)
			memory, r := verbstest.Map(t, 16*mem.PageSize)
			set(memory, oldByte)
			lkey := c.keep(t, a.p, r, func() {
				remap(t, memory)
				set(memory, newByte)
			})
			must(t, a.Conn, a.Write(1, rc.Local{Range: r, LKey: lkey}, there.remote()))
			for i, got := range there.b {
				if got != c.want {
					t.Fatalf("byte %d arrived as %q, want %q everywhere", i, got, c.want)
				}
			}
		})
	}
}

// watched sends through a cache whose watcher has to notice the change by itself.
func watched(mechanism string) func(*testing.T, verbs.Provider, mem.Range, func()) uint32 {
	return func(t *testing.T, p verbs.Provider, r mem.Range, change func()) uint32 {
		w, err := vmwatch.Open(vmwatch.Options{Mechanism: mechanism})
		if err != nil {
			t.Fatal(err) // the test bed has all of them
		}
		t.Cleanup(func() { _ = w.Close() }) // after the cache
		t.Logf("mechanism %v", w.Mechanism())
		return throughCache(t, p, r, w, func(*regcache.Cache) { change() })
	}
}

// throughCache uses r through a cache before and after the change.
func throughCache(t *testing.T, p verbs.Provider, r mem.Range, w regcache.Watcher,
	change func(*regcache.Cache)) (lkey uint32) {
	t.Helper()
	cache, err := regcache.New(p, regcache.Options{Watcher: w})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if i == 1 {
			change(cache)
		}
		ref, _, err := cache.Acquire(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		lkey = ref.LKey()
		if i == 0 {
			cache.Release(ref)
			continue
		}
		t.Cleanup(func() { // the transfer comes after this
			cache.Release(ref)
			if err := cache.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return lkey
}

func set(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}
