package schedule

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// BenchmarkManyRegionsCycle measures one event of a program with so many regions that each are released after their
// use and registered again before the next one: all that the scheduler does for it.
func BenchmarkManyRegionsCycle(b *testing.B) {
	for _, c := range []struct {
		name             string
		regions, workers int
	}{{"100", 100, 1}, {"1000", 1000, 1}, {"10000", 10_000, 1}, {"10000-4-workers", 10_000, 4}} {
		b.Run(c.name, func(b *testing.B) { benchmarkCycles(b, c.regions, c.workers) })
	}
}

func benchmarkCycles(b *testing.B, regions, workers int) {
	s := NewScheduler(predictor.NewPinwheel(predictor.Options{Window: 2}),
		SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true, Workers: workers})
	const everyNs = ms
	var nowNs, actions int64
	id := 0
	step := func() {
		nowNs += everyNs
		s.Observe(Event{Pages: 1, Use: predictor.Use{
			Region: mem.RegionID(id + 1), StartNs: nowNs - us, EndNs: nowNs, Frames: [predictor.MaxFrames]uint64{uint64(id + 1)},
		}}, nowNs)
		id = (id + 1) % regions
		for range 8 {
			a := s.Next(nowNs)
			if a.Kind == Idle || a.Kind == Wait {
				break
			}
			s.Done(a, nowNs, nowNs+testCosts.Register.Ns(1), nil)
			actions++
		}
	}
	for range 8 * regions {
		step()
	}
	actions = 0
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(actions)/float64(b.N), "actions/op")
	b.ReportMetric(float64(s.due.all.n+s.gated.all.n), "waiting")
}
