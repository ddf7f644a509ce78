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

func TestCoreWaitIsBoundByTheSlicesOfAll(t *testing.T) {
	for _, c := range []struct {
		p    Placement
		want int64
	}{
		{Placement{Helpers: 1}, 0},
		{Placement{Helpers: 1, Share: 0.05}, 3*ms + SwitchNs},
		{Placement{Helpers: 2, Share: 0.05}, 2 * (3*ms + SwitchNs)},
		{Placement{Helpers: 3}, 3 * (3*ms + SwitchNs)},
	} {
		var w coreWait
		if w.begin(c.p.ShareNs(3*ms), runDelay{}); w.ns() != c.want {
			t.Errorf("%+v: %d ns, want %d", c.p, w.ns(), c.want)
		}
		w.observe(runDelay{100 * second, 100}, 0)
		if w.ns() != c.want {
			t.Errorf("%+v: %d ns after waits of a second, want %d at most", c.p, w.ns(), c.want)
		}
	}
}

func TestCoreWaitFollowsWhatTheKernelMeasured(t *testing.T) {
	var w coreWait
	w.begin(3*ms, runDelay{7 * second, 7})
	if w.observe(runDelay{7*second + us, 8}, 0); w.ns() < 3*ms {
		t.Error("one wait is taken for all")
	}
	now := runDelay{7 * second, 7}
	for range 50 {
		now.runs += 100
		now.waitedNs += 100 * 20 * us
		w.observe(now, 0)
	}
	if ns := w.ns(); ns < 20*us || ns > 40*us {
		t.Errorf("%d us for waits of 20 us", ns/us)
	}
	for range 50 {
		now.runs += 100
		now.waitedNs += 100 * ms
		w.observe(now, 0)
	}
	if ns := w.ns(); ns < ms || ns > 2*ms {
		t.Errorf("%d us for waits of 1 ms", ns/us)
	}
}

func TestThreadAllowsForItsWaitsForTheCore(t *testing.T) {
	var runs atomic.Int64
	k := newKeeper(schedule.Never / 2)
	th := start(t, ThreadOptions{Decider: k, Clock: &clocktest.Fake{}, CPU: AnyCPU, runDelay: func() (runDelay, bool) {
		n := runs.Add(100)
		return runDelay{n * 50 * us, n}, true
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
	if d.runs <= 0 || d.waitedNs < 0 || later.runs <= d.runs {
		t.Errorf("%+v, later %+v", d, later)
	}
}
