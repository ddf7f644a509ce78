package helper

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/schedule"
)

// A rank counts like a helper.
func TestShareIsTheSlicesOfAllOnTheProcessor(t *testing.T) {
	for _, c := range []struct {
		p    Placement
		want int64
	}{
		{Placement{Helpers: 1}, 0},
		{Placement{Helpers: 1, Shared: true}, 3*ms + schedule.SwitchNs},
		{Placement{Helpers: 2, Shared: true}, 2 * (3*ms + schedule.SwitchNs)},
		{Placement{Helpers: 3}, 3 * (3*ms + schedule.SwitchNs)},
	} {
		if ns := c.p.ShareNs(3 * ms); ns != c.want {
			t.Errorf("%+v: %d ns, want %d", c.p, ns, c.want)
		}
	}
}

func TestThreadAllowsForItsWaitsForTheCore(t *testing.T) {
	var runs atomic.Int64
	k := newKeeper(schedule.Never / 2)
	th := start(t, ThreadOptions{Decider: k, Clock: &clocktest.Fake{}, CPU: AnyCPU, runDelay: func() (schedule.RunDelay, bool) {
		n := runs.Add(100)
		return schedule.RunDelay{WaitedNs: n * 50 * us, Runs: n}, true
	}})
	th.Place(Placement{CPU: AnyCPU, Helpers: 2})
	testwait.Until(t, "the measured wait", func() bool { ns := k.shareNs.Load(); return ns > 50*us && ns < 200*us })
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "none on a core of its own", func() bool { return k.shareNs.Load() == 0 })
}

func TestKernelTellsTheWaitsOfTheThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	delays := openRunDelay()
	defer delays.close()
	d, ok := delays.read()
	if !ok {
		t.Skip("/proc/thread-self/schedstat is missing: the kernel has no CONFIG_SCHED_INFO")
	}
	time.Sleep(time.Millisecond) // the thread gives its processor back
	later, _ := delays.read()
	if d.Runs <= 0 || d.WaitedNs < 0 || later.Runs <= d.Runs {
		t.Errorf("%+v, later %+v", d, later)
	}
}
