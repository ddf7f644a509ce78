package schedule

import "testing"

func TestCoreWaitIsBoundByTheSlicesOfAll(t *testing.T) {
	for _, mostNs := range []int64{0, 3*ms + SwitchNs, 9 * ms} {
		var w CoreWait
		if w.Begin(mostNs, RunDelay{}); w.Ns() != mostNs || w.Due(0) != (mostNs > 0) {
			t.Errorf("%d ns, want %d; due: %t", w.Ns(), mostNs, w.Due(0))
		}
		if w.Observe(RunDelay{100 * second, 100}, 0); w.Ns() != mostNs || w.Due(1) {
			t.Errorf("%d ns after waits of a second, want %d at most; due at once: %t", w.Ns(), mostNs, w.Due(1))
		}
	}
}

func TestCoreWaitFollowsWhatTheKernelMeasured(t *testing.T) {
	var w CoreWait
	w.Begin(3*ms, RunDelay{7 * second, 7})
	if w.Observe(RunDelay{7*second + us, 8}, 0); w.Ns() < 3*ms {
		t.Error("one wait is taken for all")
	}
	now := RunDelay{7 * second, 7}
	for range 50 {
		now.Runs += 100
		now.WaitedNs += 100 * 20 * us
		w.Observe(now, 0)
	}
	if ns := w.Ns(); ns < 20*us || ns > 40*us {
		t.Errorf("%d us for waits of 20 us", ns/us)
	}
	for range 50 {
		now.Runs += 100
		now.WaitedNs += 100 * ms
		w.Observe(now, 0)
	}
	if ns := w.Ns(); ns < ms || ns > 2*ms {
		t.Errorf("%d us for waits of 1 ms", ns/us)
	}
}
