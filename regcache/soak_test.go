package regcache_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
)

// The soak: threads that map, unmap, protect, write, acquire and transfer
// memory of their own and of each other, while a helper deregisters and
// registers, a third party changes limits and cleans, and the provider fails at
// random. Two seconds of it are a unit test; PINWHEEL_SOAK=10m is the real thing.

const (
	arenaPages = 64
	soakAccess = verbs.AccessLocalWrite
)

func TestSoakStaysConsistentAndLeaksNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := 2 * time.Second
	if s := os.Getenv("PINWHEEL_SOAK"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal("PINWHEEL_SOAK: ", err)
		}
	}
	testwait.BoundAt(t, d+testwait.Limit)
	var dev device
	ring, err := uring.Open(uring.Options{})
	switch {
	case err == nil:
		dev = ring
	case errors.Is(err, verbs.ErrNotPermitted) || errors.Is(err, verbs.ErrUnsupported):
		t.Logf("without transfers: %v", err)
		dev = sim.New(sim.Options{})
	default:
		t.Fatal(err)
	}
	s := &soak{t: t, ring: ring, end: time.Now().Add(d), seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", s.seed)
	group := regcache.NewGroup(mem.Unlimited)
	if s.c, err = regcache.New(&faulty{device: dev}, regcache.Options{KnownRegions: 200, Group: group}); err != nil {
		t.Fatal(err)
	}
	shared := newArena(t)
	var wg sync.WaitGroup
	for i := range 3 {
		own := newArena(t)
		wg.Go(func() { s.user(uint64(i), own, shared) })
	}
	wg.Go(s.helper)
	wg.Go(s.limits)
	wg.Wait()
	t.Logf("%+v", s.c.Stats())
	if err := errors.Join(s.c.Verify(), s.c.Close()); err != nil {
		t.Error(err)
	}
	if u := dev.Usage(); u != (verbs.Usage{}) || group.Bytes() != 0 {
		t.Errorf("leaked: %+v, %d bytes in the group", u, group.Bytes())
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

type soak struct {
	t      *testing.T
	c      *regcache.Cache
	ring   *uring.Provider // nil without transfers
	end    time.Time
	seed   uint64
	lastID atomic.Uint64
}

func (s *soak) running() bool { return time.Now().Before(s.end) && !s.t.Failed() }

// held is a reference and what it is for.
type held struct {
	ref     regcache.Ref
	own     bool
	from, n int
	maps    [arenaPages]uint32 // of the arena, when it was taken
}

func (s *soak) user(id uint64, own, shared *arena) {
	f, err := s.c.Thread()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer f.Close()
	sink, err := unix.MemfdCreate("soak", 0)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer unix.Close(sink)
	rng := rand.New(rand.NewPCG(s.seed, id))
	var refs []held
	next := id << 40
	for s.running() {
		from := rng.IntN(arenaPages)
		n := 1 + rng.IntN(min(12, arenaPages-from))
		switch k := rng.IntN(100); {
		case k < 3:
			s.remap(own, from, n, rng.IntN(2) == 0)
		case k < 6:
			s.protect(own, from, n, rng.IntN(3))
		case k < 20:
			for i := from; i < from+n; i++ {
				if own.mapped[i] && own.able[i] {
					next++
					own.number[i] = next
					*(*uint64)(pointer(own.pages(i, 1).Start)) = next
				}
			}
		case k < 60 && len(refs) > 0:
			i := rng.IntN(len(refs))
			s.check(refs[i], own, sink)
			f.Release(refs[i].ref)
			refs = append(refs[:i], refs[i+1:]...)
		default:
			at := own
			if k > 85 {
				at = shared
			}
			h := held{own: at == own, from: from, n: n, maps: at.maps}
			if s.acquire(f, at, &h, rng.IntN(10)) {
				s.check(h, own, sink)
				refs = append(refs, h)
			}
		}
	}
	for _, h := range refs {
		f.Release(h.ref)
	}
}

func (s *soak) acquire(f *regcache.Local, at *arena, h *held, how int) bool {
	r := at.pages(h.from, h.n)
	var err error
	switch how {
	case 0:
		h.ref, _, err = f.Register(r, soakAccess)
	case 1:
		var ok bool
		if h.ref, ok = f.IsRegistered(r, soakAccess); !ok {
			return false
		}
	default:
		h.ref, _, err = f.Acquire(r, soakAccess)
	}
	if err != nil {
		if !errors.Is(err, verbs.ErrPinnedMemory) && !errors.Is(err, verbs.ErrRegions) &&
			!errors.Is(err, verbs.ErrNotMapped) {
			s.t.Errorf("acquire %v: %v", r, err)
		}
		return false
	}
	if g := h.ref.Region(); !g.Range.Contains(r) || !g.Access.Includes(soakAccess) {
		s.t.Errorf("acquire %v: got %+v", r, g)
	}
	for i := h.from; h.own && s.ring != nil && i < h.from+h.n; i++ {
		if !at.mapped[i] {
			s.t.Errorf("page %d of %v is not mapped, and was registered", i, r)
		}
	}
	s.lastID.Store(max(s.lastID.Load(), uint64(h.ref.ID())))
	return true
}

// check transfers the numbers of the pages through the registration. For a
// reference that was taken before pages were mapped anew, nothing is known of them.
func (s *soak) check(h held, own *arena, sink int) {
	if s.ring == nil {
		return
	}
	g := h.ref.Region()
	for i := h.from; i < h.from+h.n; i++ {
		at := own.pages(i, 1).Start
		if !h.own {
			at = g.Range.Start
		}
		if n, err := s.ring.WriteFixed(g, at, 8, sink, 0); n != 8 || err != nil {
			s.t.Errorf("transfer through %+v: %d, %v", g, n, err)
			return
		}
		if !h.own || !own.mapped[i] || own.maps[i] != h.maps[i] {
			continue
		}
		var got [8]byte
		if _, err := unix.Pread(sink, got[:], 0); err != nil {
			s.t.Error(err)
			return
		}
		if v := binary.NativeEndian.Uint64(got[:]); v != own.number[i] {
			s.t.Errorf("page %d at %#x: sent %d, want %d: stale registration %+v", i, at, v, own.number[i], g)
		}
	}
}

func (s *soak) helper() {
	rng := rand.New(rand.NewPCG(s.seed, 1000))
	var gone []mem.RegionID
	for s.running() {
		id := mem.RegionID(s.lastID.Load())
		id -= min(id, mem.RegionID(rng.IntN(100)))
		var err error
		if rng.IntN(2) == 0 {
			err = s.c.Deregister(id)
		} else {
			err = s.c.Register(id)
		}
		for _, fine := range []error{nil, regcache.ErrUnknown, regcache.ErrInUse, verbs.ErrPinnedMemory,
			verbs.ErrRegions, verbs.ErrNotMapped} {
			if errors.Is(err, fine) {
				err = nil
				break
			}
		}
		if err != nil {
			s.t.Error(err)
		}
		gone = s.c.Gone(gone[:0])
		for _, id := range gone {
			if s.c.Known(id) {
				s.t.Errorf("region %d is gone, and known", id)
			}
		}
	}
}

func (s *soak) limits() {
	rng := rand.New(rand.NewPCG(s.seed, 2000))
	for s.running() {
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
		if err := s.c.Verify(); err != nil {
			s.t.Error(err)
		}
		switch rng.IntN(10) {
		case 0:
			if _, err := s.c.Clean(); err != nil {
				s.t.Error(err)
			}
		case 1, 2:
			l := regcache.Limits{Bytes: int64(mem.PageSize) * int64(20+rng.IntN(400)), Regions: int64(4 + rng.IntN(60))}
			if err := s.c.SetLimits(l); err != nil {
				s.t.Error(err)
			}
		case 3:
			if err := s.c.SetLimits(regcache.Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited}); err != nil {
				s.t.Error(err)
			}
		}
	}
}
