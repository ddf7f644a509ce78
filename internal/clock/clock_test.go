package clock

import (
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// Both clocks measure the same interval; what is asserted is their ratio. The time between the readings of the two, in
// which other processes may run, is known by two readings of one.
func TestClockKeepsItsRateOverCalibration(t *testing.T) {
	Calibrate()
	if tsc.Load() == nil {
		t.Log("the time stamp counter is not this kernel's clock source; NowNs reads the vDSO")
	}
	outer := time.Now()
	ns, inner := NowNs(), time.Now()
	time.Sleep(50 * time.Millisecond)
	leastNs := float64(time.Since(inner))
	gotNs := float64(NowNs() - ns)
	mostNs := float64(time.Since(outer))
	if gotNs < 0.99*leastNs || gotNs > 1.01*mostNs {
		t.Errorf("NowNs advanced by %.0f ns in %.0f to %.0f ns", gotNs, leastNs, mostNs)
	}
}

func TestClockDoesNotGoBackInOneThread(t *testing.T) {
	last := NowNs()
	for i := range 200_000 {
		if i == 100_000 {
			Calibrate()
			last -= 1000 // the two clocks are read within this of each other
		}
		now := NowNs()
		if now < last {
			t.Fatalf("reading %d: %d after %d", i, now, last)
		}
		last = now
	}
}

func TestReadingsOfCThreadsAreOfTheSameClock(t *testing.T) {
	var monotonic unix.Timespec
	beforeNs := NowNs()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic); err != nil {
		t.Fatal(err)
	}
	afterNs := NowNs()
	const errorNs = 1_000_000 // 10 ppm of the 100 s that the test may stand still
	if ns := FromMonotonic(monotonic.Nano()); ns < beforeNs-errorNs || ns > afterNs+errorNs {
		t.Errorf("%d ns, want it from %d to %d", ns, beforeNs, afterNs)
	}
}

func TestTSCLineFollowsBothMoments(t *testing.T) {
	// 2.5 GHz, over a year: the product exceeds 64 bits.
	l := newTSCLine(reading{1000, 500}, reading{1000 + 2_500_000_000, 500 + 1_000_000_000})
	const yearNs = 365 * 24 * 3600 * 1_000_000_000
	for _, ns := range []int64{0, 1, 1_000_000, yearNs} {
		ticks := l.atTicks + uint64(ns)*5/2
		if got := l.ns(ticks) - l.atNs; got < ns-ns/1_000_000_000-1 || got > ns+ns/1_000_000_000+1 {
			t.Errorf("%d ns after the first moment reads %d", ns, got)
		}
	}
	if l := newTSCLine(reading{1000, 500}, reading{1000, 900}); l != nil {
		t.Error("a line through a counter that stands still")
	}
	if l := newTSCLine(reading{1000, 500}, reading{900, 900}); l != nil {
		t.Error("a line through a counter that goes back")
	}
}

// In a process of others the runtime sends no signal that would end a sleep. At most one collection ends within a
// sleep that keeps its P.
func TestDedicatedSleepDoesNotDelayGarbageCollection(t *testing.T) {
	testwait.Bound(t)
	const noSignals = "GODEBUG=asyncpreemptoff=1"
	if "GODEBUG="+os.Getenv("GODEBUG") != noSignals {
		c := testwait.Command(t, os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), noSignals)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", noSignals, err, out)
		}
		return
	}
	var sleeps, stop atomic.Int64
	over := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for good: the thread ends here
		defer close(over)
		for stop.Load() == 0 {
			Dedicated{}.SleepNs(LongNs-1, nil)
			sleeps.Add(1)
		}
	}()
	testwait.Until(t, "three collections within one sleep", func() bool {
		before := sleeps.Load()
		for range 3 {
			runtime.GC()
		}
		return sleeps.Load() == before && before > 0
	})
	stop.Store(1)
	<-over
}
