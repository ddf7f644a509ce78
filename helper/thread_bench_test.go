package helper

import (
	"fmt"
	"testing"
	"time"

	"pinwheel/internal/clock"
	"pinwheel/queue"
	"pinwheel/schedule"
)

// BenchmarkHelper reports what a helper costs and how exact it is: cpu-us/op is
// its processor time, late-us how late registrations begin: the median, and the 99th percentile.
// One operation is one period of a program with one region of 32 MiB, used at the beginning of the
// period and needed at its end.
func BenchmarkHelper(b *testing.B) {
	for _, c := range []clock.Clock{clock.Shared{}, clock.Dedicated{}} {
		for _, period := range []time.Duration{200 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(fmt.Sprintf("%T/%v", c, period)[len("clock."):], func(b *testing.B) { benchHelper(b, c, period) })
		}
		b.Run(fmt.Sprintf("%T/silent", c)[len("clock."):], func(b *testing.B) { benchHelper(b, c, 0) })
	}
}

func benchHelper(b *testing.B, c clock.Clock, period time.Duration) {
	clock.Calibrate()
	k, ring := newKeeper(int64(period)), queue.NewRing[schedule.Event](64)
	th, err := StartThread(ThreadOptions{Decider: k, Registrar: &journal{}, Clock: c, CPU: AnyCPU})
	if err != nil {
		b.Fatal(err)
	}
	th.Attach(ring)
	time.Sleep(50 * time.Millisecond) // the start
	before := th.Stats()
	for b.Loop() {
		if period == 0 {
			c.SleepNs(int64(100*time.Millisecond), nil)
			continue
		}
		start := c.NowNs()
		ring.Push(use(1, start))
		c.SleepNs(max(start+int64(period)-c.NowNs(), 1), nil)
	}
	after := th.Stats()
	th.Close()
	b.ReportMetric(float64(after.CPUNs-before.CPUNs)/1000/float64(b.N), "cpu-us/op")
	if after.Starts.Count() > 0 { // the first 50 ms have none
		b.ReportMetric(float64(after.Starts.QuantileNs(0.5))/1000, "late-us")
		b.ReportMetric(float64(after.Starts.QuantileNs(0.99))/1000, "p99-late-us")
	}
	b.ReportMetric(float64(after.Wakeups-before.Wakeups)/float64(b.N), "wakeups/op")
}
