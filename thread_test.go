package pinwheel

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/placement"
)

// A miss whose use never ends, for the helper, would leave it with a region of which it knows nothing.
func TestHelperHearsOfTheMissesOfUsesWhoseEndItHearsOf(t *testing.T) {
	m, th := start(t, Options{ThresholdBytes: 64 << 10})
	for _, c := range []struct {
		bytes uint64
		want  bool
	}{{64<<10 - 1, false}, {64 << 10, true}} {
		r := region(int(c.bytes))
		r.End = r.Start + mem.Addr(c.bytes)
		var u Use
		if err := th.Acquire(&u, r, access, 0, nil); err != nil {
			t.Fatal(err)
		}
		if id := th.observed(&u); (id != 0) != c.want || c.want && id != u.ref.ID() {
			t.Errorf("%d bytes: the helper hears of a miss of region %d, the use is of %d", c.bytes, id, u.ref.ID())
		}
		before := m.Stats().Helper.Events
		th.Release(&u)
		if c.want {
			testwait.Until(t, "its end is heard of", func() bool { return m.Stats().Helper.Events == before+1 })
		}
	}
	var none Use
	if id := th.observed(&none); id != 0 {
		t.Errorf("region %d of a use that holds nothing", id)
	}
}

// The helper is placed near the communication thread, wherever that moves.
func TestMissTellsWhereTheThreadRuns(t *testing.T) {
	testwait.Bound(t)
	cpus, err := placement.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(cpus) < 2 {
		t.Skip("needs two processors to move between; this process may use one")
	}
	m, th := start(t, Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: its affinity is not for others
		for i, cpu := range cpus[:2] {
			var set unix.CPUSet
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				t.Error(err)
				return
			}
			transfer(t, th, region(i), 0)
			if got := m.commCPU.Swap(helper.AnyCPU); got != int64(cpu) {
				t.Errorf("the thread runs on processor %d and was last seen on %d", cpu, got)
			}
			var u Use
			if err := th.AcquireOnce(&u, region(i), access, 0, nil); err != nil {
				t.Error(err)
				return
			}
			th.Release(&u)
			if got := m.commCPU.Load(); got != int64(cpu) {
				t.Errorf("registering once, the thread runs on processor %d and was last seen on %d", cpu, got)
			}
		}
	}()
	<-done
}
