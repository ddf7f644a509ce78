//go:build linux && cgo

package rc_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/verbstest"
)

// TestBytesAreRightThroughCachedRegions moves pieces of random size and place
// by RDMA write and read, 10,000 times, or 2,000 in short tests, between memory that
// is registered through caches: found there, deregistered by the helper's call and
// registered again, or mapped anew under an invalidated registration.
func TestBytesAreRightThroughCachedRegions(t *testing.T) {
	a, b := pair(t)
	times := 10_000
	if testing.Short() {
		times = 2_000
	}
	exchange(t, newSide(t, a.p), newSide(t, b.p), a.Conn, times)
}

// side is memory behind a registration cache.
type side struct {
	b     []byte
	r     mem.Range
	cache *regcache.Cache
	ids   []mem.RegionID // of all that was handed out
	lent  regcache.Ref   // what the peer has been told of, in tests with two nodes
}

const sideBytes = 2 << 20

func newSide(t *testing.T, p verbs.Provider) *side {
	t.Helper()
	cache, err := regcache.New(p, regcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cache.Close(); err != nil {
			t.Errorf("closing the cache: %v", err)
		}
		if left := cache.Stats().Pinned; left.Regions != 0 {
			t.Errorf("the closed cache left %+v", left)
		}
	})
	s := &side{cache: cache}
	s.b, s.r = verbstest.Map(t, sideBytes)
	return s
}

func (s *side) acquire(t *testing.T, r mem.Range, a verbs.Access) regcache.Ref {
	t.Helper()
	ref, _, err := s.cache.Acquire(r, a)
	if err != nil {
		t.Fatalf("Acquire %v: %v", r, err)
	}
	s.ids = append(s.ids, ref.ID())
	return ref
}

// disturb deregisters some of what was used lately, as the helper does, and sometimes
// maps other pages in its place.
func (s *side) disturb(t *testing.T, rng *rand.Rand) {
	t.Helper()
	if rng.IntN(2) == 0 {
		i := len(s.ids) - 1 - rng.IntN(min(len(s.ids), 16))
		if s.cache.Known(s.ids[i]) {
			if err := s.cache.Deregister(s.ids[i]); err != nil {
				t.Fatalf("Deregister: %v", err)
			}
		}
	}
	if rng.IntN(100) == 0 {
		offset := rng.Uint64N(sideBytes/mem.PageSize) * mem.PageSize
		n := min(64*mem.PageSize, sideBytes-offset)
		if err := s.cache.Invalidate(part(s.r, offset, n)); err != nil {
			t.Fatal(err)
		}
		remap(t, s.b[offset:offset+n])
	}
}

// exchange moves data between two sides of one process over the connection of mine.
func exchange(t *testing.T, mine, theirs *side, c *rc.Conn, times int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2011, 4))
	const margin = 64
	for i := range times {
		n := 1 + rng.Uint64N(1<<rng.UintN(17)) // up to 64 KiB, small ones as often as large ones
		at := [2]uint64{place(rng, n), place(rng, n)}
		here, there := part(mine.r, at[0], n), part(theirs.r, at[1], n)
		read := rng.IntN(2) == 0
		from, to := mine.b[at[0]:at[0]+n], theirs.b[at[1]:at[1]+n]
		to0, to1 := at[1]-min(margin, at[1]), min(at[1]+n+margin, sideBytes)
		around := theirs.b[to0:to1]
		if read {
			from, to = to, from
			to0, to1 = at[0]-min(margin, at[0]), min(at[0]+n+margin, sideBytes)
			around = mine.b[to0:to1]
		}
		start := min(at[1], margin)
		if read {
			start = min(at[0], margin)
		}
		fill(from, rng.Uint64())
		want := bytes.Clone(around)
		copy(want[start:], from)

		l := mine.acquire(t, here, verbs.AccessLocalWrite)
		r := theirs.acquire(t, there, both)
		remote := rc.Remote{Addr: uint64(there.Start), RKey: r.RKey()}
		posted := c.Write
		if read {
			posted = c.Read
		}
		must(t, c, posted(uint64(i), rc.Local{Range: here, LKey: l.LKey()}, remote))
		if !bytes.Equal(around, want) {
			t.Fatalf("transfer %d (read: %v) of %d bytes from offset %d to %d: wrong bytes", i, read, n, at[0], at[1])
		}
		mine.cache.Release(l)
		theirs.cache.Release(r)
		mine.disturb(t, rng)
		theirs.disturb(t, rng)
	}
	for _, s := range []*side{mine, theirs} {
		st := s.cache.Stats()
		t.Logf("hits %d, first %d, late %d, deregistered %d, invalidated %d", st.Hits, st.First, st.Late,
			st.HelperDeregisters, st.Invalidated)
		if few := uint64(times / 10); st.Hits < few || st.Late < few || st.HelperDeregisters < few || st.Invalidated < few/100 {
			t.Errorf("the run did not exercise the cache: %+v", st)
		}
	}
}

// place returns a random offset for n bytes: half of the time near one of a
// few, as a program's buffers are, so that the cache has something to hit.
func place(rng *rand.Rand, n uint64) uint64 {
	at := rng.Uint64N(sideBytes - n + 1)
	if rng.IntN(2) == 0 {
		at = min(rng.Uint64N(8)*(sideBytes/8)+rng.Uint64N(100), sideBytes-n)
	}
	return at
}

// fill writes bytes that no other seed gives.
func fill(b []byte, seed uint64) {
	rng := rand.NewPCG(seed, 1)
	for len(b) > 0 {
		v := rng.Uint64()
		for i := range min(8, len(b)) {
			b[i] = byte(v >> (8 * i))
		}
		b = b[min(8, len(b)):]
	}
}
