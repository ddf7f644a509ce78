package pinwheel

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

const poolBytes = 64 << 20

// overURing returns a provider that really pins, up to a pool.
func overURing(t *testing.T) verbs.Provider {
	t.Helper()
	p, err := uring.Open(uring.Options{})
	verbstest.Available(t, err)
	t.Cleanup(func() { _ = p.Close() })
	verbstest.NeedPinned(t, p, poolBytes)
	return p
}

// vmPin is what the kernel says this process has pinned.
func vmPin(t *testing.T) int64 {
	t.Helper()
	n, err := verbs.StatusBytes("VmPin")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPreparedPoolIsRegisteredOnceForAllItsSlices(t *testing.T) {
	m, th := start(t, Options{Provider: overURing(t), Policy: LeavePinned})
	_, pool := verbstest.Map(t, poolBytes)
	before := vmPin(t)
	done := uint64(0)
	p, err := m.Prepare(t.Context(), pool, access, PrepareOptions{Progress: func(n uint64) { done = n }})
	if err != nil || !p.Kept || p.Threads < 1 || done != pool.Len() || p.PrefaultNs <= 0 || p.RegisterNs <= 0 {
		t.Errorf("%+v, %d bytes done, %v", p, done, err)
	}
	if n := vmPin(t) - before; n != poolBytes || pinned(m) != poolBytes {
		t.Errorf("%d bytes pinned, the kernel says %d", pinned(m), n)
	}
	for i := range mem.Addr(64) {
		transfer(t, th, verbstest.Part(pool, uint64(i)<<20, 1<<20), 1)
	}
	if s := m.Stats().Cache; s.Hits != 64 || s.First+s.Late != 0 {
		t.Errorf("%+v", s)
	}
	if p, err := m.Prepare(t.Context(), pool, access, PrepareOptions{}); err != nil || !p.Kept || p.Threads != 0 {
		t.Errorf("once more: %+v, %v", p, err)
	}
}

func TestPrepareProvidesPagesOnlyWhereEachUseRegistersForItself(t *testing.T) {
	for name, o := range map[string]Options{"on-demand": {Policy: OnDemand}, "disabled": {Disable: true}, "unwatched": {Watch: "none"}} {
		t.Run(name, func(t *testing.T) {
			m, _ := start(t, o)
			_, pool := verbstest.Map(t, 1<<20)
			p, err := m.Prepare(t.Context(), pool, access, PrepareOptions{})
			if err != nil || p.Kept || p.Threads != 1 || pinned(m) != 0 {
				t.Errorf("%+v, %v, %d bytes pinned", p, err, pinned(m))
			}
		})
	}
}

func TestPrepareRefusesBeforeItTouches(t *testing.T) {
	_, pool := verbstest.Map(t, 1<<20)
	readOnly, rangeOfIt := verbstest.Map(t, 1<<20)
	if err := unix.Mprotect(readOnly, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o     Options
		limit verbs.Limits
		r     mem.Range
		want  error
		says  string
	}{
		"budget":             {o: Options{BudgetBytes: 1 << 19}, r: pool, want: verbs.ErrPinnedMemory, says: "limit 512.0 KiB"},
		"memlock":            {limit: verbs.Limits{MaxPinnedBytes: 1 << 19, PinnedSource: "RLIMIT_MEMLOCK"}, r: pool, want: verbs.ErrPinnedMemory, says: "RLIMIT_MEMLOCK permits 512.0 KiB"},
		"memlock, on-demand": {o: Options{Policy: OnDemand}, limit: verbs.Limits{MaxPinnedBytes: 1 << 19}, r: pool, want: verbs.ErrPinnedMemory, says: "permits 512.0 KiB"},
		"read-only":          {r: rangeOfIt, want: verbs.ErrNotMapped, says: "read-only"},
		"nothing":            {r: mem.Range{Start: pool.Start, End: pool.Start}, want: verbs.ErrNotMapped},
		"no address":         {r: mem.Range{Start: 1 << 30, End: 1<<30 + 1<<20}, want: verbs.ErrNotMapped},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Provider = sim.New(sim.Options{Limits: c.limit})
			m, _ := start(t, c.o)
			p, err := m.Prepare(t.Context(), c.r, access, PrepareOptions{Progress: func(n uint64) {
				if n > 0 {
					t.Errorf("touched %d bytes", n)
				}
			}})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
			if p.Kept || pinned(m) != 0 {
				t.Errorf("%+v, %d bytes pinned", p, pinned(m))
			}
		})
	}
}

func TestPrepareCancelledAtAnyStepLeavesNothingPinned(t *testing.T) {
	provider := overURing(t)
	before := vmPin(t)
	for name, at := range map[string]uint64{"at once": 0, "in the middle": poolBytes / 2, "with all pages there": poolBytes} {
		t.Run(name, func(t *testing.T) {
			m, th := start(t, Options{Provider: provider, Policy: LeavePinned})
			_, pool := verbstest.Map(t, poolBytes)
			ctx, cancel := context.WithCancel(t.Context())
			if at == 0 {
				cancel()
			}
			p, err := m.Prepare(ctx, pool, access, PrepareOptions{Threads: 1, Progress: func(n uint64) {
				if n >= at {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) || p.Kept || pinned(m) != 0 || vmPin(t) != before {
				t.Errorf("%+v, %v; %d bytes pinned, %d more by the kernel", p, err, pinned(m), vmPin(t)-before)
			}
			transfer(t, th, pool, 1)
		})
	}
}

func TestPoolUnmappedWhileItIsPreparedIsAnError(t *testing.T) {
	provider := overURing(t)
	before := vmPin(t)
	m, th := start(t, Options{Provider: provider, Policy: LeavePinned})
	_, pool := verbstest.Map(t, poolBytes)
	half := verbstest.Part(pool, 0, poolBytes/2)
	var once sync.Once
	_, err := m.Prepare(t.Context(), pool, access, PrepareOptions{Threads: 1, Progress: func(uint64) {
		once.Do(func() { verbstest.Unmap(t, mem.Range{Start: half.End, End: pool.End}) })
	}})
	if !errors.Is(err, verbs.ErrNotMapped) || pinned(m) != 0 || vmPin(t) != before {
		t.Errorf("%v; %d bytes pinned, %d more by the kernel", err, pinned(m), vmPin(t)-before)
	}
	transfer(t, th, half, 1)
}

// Threads use a pool that others prepare and give back meanwhile.
func TestPreparingBesideUsesAndInvalidation(t *testing.T) {
	m, _ := start(t, Options{Policy: LeavePinned})
	_, pool := verbstest.Map(t, 8<<20)
	testwait.Bound(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 50 {
				// It is not kept if it was invalidated in each of many attempts.
				if _, err := m.Prepare(t.Context(), pool, access, PrepareOptions{Threads: 2}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			th, err := m.Thread()
			if err != nil {
				t.Error(err)
				return
			}
			defer th.Close()
			for i := range uint64(200) {
				transfer(t, th, verbstest.Part(pool, i%8<<20, 1<<20), 1)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if err := m.Invalidate(pool); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := m.cache.Verify(); err != nil {
		t.Error(err)
	}
}

// Close comes at the first word of progress, or at the last, when there is nothing left to end.
func TestCloseEndsWhatIsBeingPrepared(t *testing.T) {
	for _, from := range []uint64{1, poolBytes} {
		m, _ := start(t, Options{})
		_, pool := verbstest.Map(t, poolBytes)
		var closing sync.WaitGroup
		var once sync.Once
		_, err := m.Prepare(t.Context(), pool, access, PrepareOptions{Threads: 1, Progress: func(done uint64) {
			if done >= from {
				once.Do(func() { closing.Go(func() { _ = m.Close() }) })
				<-m.preparing.Done()
			}
		}})
		if !errors.Is(err, ErrClosed) {
			t.Errorf("closed after %d bytes: %v", from, err)
		}
		closing.Wait()
	}
}

func TestPrepareOnAClosedManagerFails(t *testing.T) {
	m, _ := start(t, Options{})
	_, pool := verbstest.Map(t, 1<<20)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Prepare(t.Context(), pool, access, PrepareOptions{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
