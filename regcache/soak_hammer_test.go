package regcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"

	"pinwheel/internal/fault"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// hammer is two caches of a group under everything at once: hits, misses,
// changes noticed and not, evictions, changed limits, a helper; and faults
// (panics, errors, delays) in every call that they make.
type hammer struct {
	t      *testing.T
	caches [2]*Cache
	w      *watcher
	end    time.Time
	calm   atomic.Bool                 // no more faults
	fired  [2]map[string]*atomic.Int64 // panics and errors, by point
}

// rarely is how many calls there are to a fault, of either kind: fewer where
// there are few.
func rarely(point string) int {
	if point == "drain" || point == "unchanged" {
		return 6
	}
	return 50
}

var errSeeded = errors.New("seeded error")

// at is where every call of a cache goes through.
func (h *hammer) at(point string) error {
	if h.calm.Load() {
		return nil
	}
	switch rand.IntN(rarely(point)) {
	case 0:
		h.fired[0][point].Add(1)
		panic(fmt.Sprintf("seeded fault in %s", point))
	case 1:
		h.fired[1][point].Add(1)
		if point == "register" && rand.IntN(2) == 0 {
			return &verbs.Error{Op: "hammer", Kind: verbs.ErrPinnedMemory, Errno: syscall.ENOMEM}
		}
		return errSeeded
	case 2:
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
	case 3:
		runtime.Gosched()
	}
	return nil
}

// expect fails the test for an error that nothing of this explains.
func (h *hammer) expect(what string, err error) {
	for _, fine := range []error{nil, errSeeded, ErrFault, ErrUnknown, ErrInUse, verbs.ErrPinnedMemory, verbs.ErrRegions} {
		if errors.Is(err, fine) {
			return
		}
	}
	h.t.Errorf("%s: %v", what, err)
}

// running reports whether the time is not up, or some point has not had a fault of
// each kind: on a busy machine that takes longer.
func (h *hammer) running() bool {
	left := time.Until(h.end)
	return (left > 0 || left > -hammerGrace && !h.haveAllFired()) && !h.t.Failed()
}

func (h *hammer) haveAllFired() bool {
	for _, byPoint := range h.fired {
		for _, n := range byPoint {
			if n.Load() == 0 {
				return false
			}
		}
	}
	return true
}

// hammerGrace is how much longer the hammer may go on.
const hammerGrace = 30 * time.Second

// TestSoakFaultsInEveryCall leaves nothing pinned and nobody waiting. It takes
// two seconds, or half of what PINWHEEL_SOAK says.
func TestSoakFaultsInEveryCall(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := 2 * time.Second
	if s := os.Getenv("PINWHEEL_SOAK"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal("PINWHEEL_SOAK: ", err)
		}
		d /= 2
	}
	h := &hammer{t: t, w: newWatcher(t), end: time.Now().Add(d)}
	h.w.verifies = func(r mem.Range) bool { return r.Start >= span(1000, 1).Start }
	for i := range h.fired {
		h.fired[i] = map[string]*atomic.Int64{}
		for _, point := range points {
			h.fired[i][point] = new(atomic.Int64)
		}
	}
	p := sim.New(sim.Options{})
	group := NewGroup(80 * int64(mem.PageSize))
	var told atomic.Int64
	for i := range h.caches {
		o := Options{Group: group, KnownRegions: 40, OnFault: func(f *fault.Fault) { told.Add(1); panic(f) }}
		b := &between{p, h.w, h.at}
		if i == 0 {
			o.Watcher = b
		}
		var err error
		if h.caches[i], err = New(b, o); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { h.user(h.caches[i/3]) })
		}
		for _, f := range []func(*rand.Rand){h.helper, h.changes, h.limits} {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
				for h.running() {
					f(rng)
				}
			})
		}
		wg.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(d + hammerGrace + testwait.Limit):
		stacks := make([]byte, 1<<18)
		t.Fatalf("somebody waits for ever: %+v\n%s", h.caches[0].Stats(), stacks[:runtime.Stack(stacks, true)])
	}
	h.calm.Store(true)
	for i, kind := range []string{"panics", "errors"} {
		line := kind
		for _, point := range points {
			n := h.fired[i][point].Load()
			if line += fmt.Sprintf(", %s %d", point, n); n == 0 {
				t.Errorf("no %s in %s: the test shows too little", kind, point)
			}
		}
		t.Log(line)
	}
	t.Logf("%d told; %+v", told.Load(), h.caches[0].Stats())
	for _, c := range h.caches {
		if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if u := p.Usage(); u != (verbs.Usage{}) || group.Usage() != (Usage{}) {
		t.Errorf("left %+v, in the group %+v, %+v", u, group.Usage(), h.caches[0].Stats())
	}
}

func (h *hammer) user(c *Cache) {
	f, err := c.Thread()
	if err != nil {
		h.t.Error(err)
		return
	}
	defer f.Close()
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	var refs []Ref
	for h.running() {
		if len(refs) > rng.IntN(4) {
			i := rng.IntN(len(refs))
			f.Release(refs[i])
			refs = slices.Delete(refs, i, i+1)
			continue
		}
		var ref Ref
		r := span(rng.Uint64N(2)*1000+rng.Uint64N(6)*20+rng.Uint64N(3), 8+rng.Uint64N(4))
		switch rng.IntN(20) {
		case 0:
			ref, _, err = f.Register(r, both)
		case 1:
			ref, _ = f.IsRegistered(r, both)
		default:
			ref, _, err = f.Acquire(r, both)
		}
		if h.expect("acquire", err); ref.Valid() {
			if g := ref.Region(); !g.Range.Contains(r) {
				h.t.Errorf("asked for %v, got %+v", r, g)
			}
			refs = append(refs, ref)
		}
	}
	for _, ref := range refs {
		f.Release(ref)
	}
}

func (h *hammer) helper(rng *rand.Rand) {
	c := h.caches[rng.IntN(2)]
	ids := known(c)
	if len(ids) == 0 {
		runtime.Gosched()
		return
	}
	id := ids[rng.IntN(len(ids))]
	if rng.IntN(2) == 0 {
		_, err := c.TryRegister(id)
		h.expect("register", err)
		return
	}
	if rng.IntN(2) == 0 {
		c.CloseIdle(ids)
	}
	_, err := c.TryDeregister(id)
	h.expect("deregister", err)
}

func (h *hammer) changes(rng *rand.Rand) {
	time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
	r := span(rng.Uint64N(2)*1000+rng.Uint64N(6)*20, 1)
	if rng.IntN(3) == 0 {
		h.expect("invalidate", h.caches[rng.IntN(2)].Invalidate(r))
		return
	}
	h.w.change(r)
}

func (h *hammer) limits(rng *rand.Rand) {
	time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	c := h.caches[rng.IntN(2)]
	l := Limits{Bytes: int64(mem.PageSize) * int64(20+rng.IntN(80)), Regions: int64(4 + rng.IntN(20))}
	switch rng.IntN(5) {
	case 0:
		_, err := c.Clean()
		h.expect("clean", err)
	case 1:
		h.expect("limits", c.SetLimits(l))
	case 2:
		h.expect("limits of the group", c.opts.Group.SetLimits(l))
	case 3:
		h.expect("no limits", c.SetLimits(Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited}))
	case 4:
		if err := c.Verify(); err != nil {
			h.t.Error(err)
		}
	}
}
