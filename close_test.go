package pinwheel

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/vmwatch"
)

// TestAcquireAfterCloseFails has threads that are never closed acquire while
// the Manager is closed, and afterwards, with everything that can watch.
func TestAcquireAfterCloseFails(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 64*int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	for _, watch := range []string{"", "none", "pfn", "uffd", "tp", "tps", "fentry"} {
		t.Run("watch "+watch, func(t *testing.T) {
			for range 2 {
				closeUnderUse(t, watch, memory)
			}
		})
	}
}

func closeUnderUse(t *testing.T, watch string, memory []byte) {
	p := sim.New(sim.Options{})
	m, err := New(Options{Provider: p, Watch: watch, IdlePolicy: IdleIgnore, Costs: verbs.DefaultCosts,
		Warn: func(s string) { t.Error("unexpected warning:", s) }})
	if errors.Is(err, vmwatch.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var threads []*Thread
	var wg sync.WaitGroup
	var ready sync.WaitGroup
	for i := range 4 {
		th, err := m.Thread()
		if err != nil {
			t.Fatal(err)
		}
		threads = append(threads, th)
		ready.Add(1)
		wg.Go(func() {
			if err := useUntilItFails(th, mem.RangeOf(memory[i*16*int(mem.PageSize):][:16*mem.PageSize]),
				ready.Done); !isClosed(err) {
				t.Errorf("while it is closed: %v, want %v", err, ErrClosed)
			}
		})
	}
	ready.Wait()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	runtime.GC()
	for i, th := range threads {
		for range 2 {
			if err := useUntilItFails(th, mem.RangeOf(memory[:(i+1)*int(mem.PageSize)]), func() {}); !isClosed(err) {
				t.Errorf("afterwards: %v, want %v", err, ErrClosed)
			}
		}
	}
	if _, err := m.Thread(); !isClosed(err) {
		t.Errorf("Thread: %v, want %v", err, ErrClosed)
	}
	if u := p.Usage(); u.Regions != 0 {
		t.Errorf("left %+v", u)
	}
}

func isClosed(err error) bool { return errors.Is(err, ErrClosed) && errors.Is(err, regcache.ErrClosed) }

func useUntilItFails(th *Thread, r mem.Range, first func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a failed test, not a dead one
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); {
		var u Use
		if err := th.Acquire(&u, r, access, 0, nil); err != nil {
			return err
		}
		th.Release(&u)
		if first != nil {
			first()
			first = nil
		}
	}
	return errors.New("it never failed")
}

func TestAcquireAfterCloseFailsHoweverUsesAreRegistered(t *testing.T) {
	for _, o := range []Options{{Policy: OnDemand}, {Disable: true}, {Policy: LeavePinned}, {Policy: Pinwheel}} {
		m, th := start(t, o)
		transfer(t, th, region(0), 0)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		var u Use
		if err := th.Acquire(&u, region(0), access, 0, nil); !isClosed(err) {
			t.Errorf("%+v: %v", o, err)
		}
		m.plain.Store(true) // as after a fault
		if err := th.Acquire(&u, region(0), access, 0, nil); !isClosed(err) {
			t.Errorf("%+v after a fault: %v", o, err)
		}
	}
}

func TestThreadMayBeClosedTwice(t *testing.T) {
	m, th := start(t, Options{Policy: LeavePinned})
	var u Use
	if err := th.Acquire(&u, region(0), access, 0, nil); err != nil {
		t.Fatal(err)
	}
	th.Close()
	th.Close()
	a, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if a.local == b.local || th.local == b.local && th.local == a.local {
		t.Error("two Threads share what belongs to one")
	}
	th.Release(&u)
	var again Use
	if err := th.Acquire(&again, region(0), access, 0, nil); !isClosed(err) {
		t.Errorf("Acquire on a closed Thread: %v, want %v", err, ErrClosed)
	}
	if n, err := m.cache.Clean(); n != 1 || err != nil {
		t.Errorf("%d registrations idle, %v: the use was not released", n, err)
	}
}
