package verbstest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Together has this many threads register n bytes at the same time, each its own, and then deregister them. It reports
// what one registration and one deregistration take: elapsed time of the slowest thread, and processor time of all on
// average, which rises where they get in each other's way.
func Together(b *testing.B, p verbs.Provider, threads int, n uint64) {
	NeedPinned(b, p, int64(threads)*int64(n))
	ranges := make([]mem.Range, threads)
	for i := range ranges {
		_, ranges[i] = Map(b, n)
		if err := touch(p, ranges[i]); err != nil {
			b.Fatal(err)
		}
	}
	regions := make([]verbs.Region, threads)
	var registering, deregistering spent
	for b.Loop() {
		registering.by(threads, func(i int) (err error) {
			regions[i], err = p.Register(ranges[i], verbs.AccessLocalWrite)
			return err
		})
		deregistering.by(threads, func(i int) error { return p.Deregister(regions[i]) })
	}
	if err := registering.err.Load() + deregistering.err.Load(); err != "" {
		b.Fatal(err)
	}
	rounds := float64(b.N)
	b.ReportMetric(float64(registering.elapsedNs)/rounds, "register-ns")
	b.ReportMetric(float64(registering.cpuNs.Load())/rounds/float64(threads), "register-cpu-ns")
	b.ReportMetric(float64(deregistering.elapsedNs)/rounds, "deregister-ns")
	b.ReportMetric(float64(deregistering.cpuNs.Load())/rounds/float64(threads), "deregister-cpu-ns")
}

// touch maps the pages of r in.
func touch(p verbs.Provider, r mem.Range) error {
	g, err := p.Register(r, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	return p.Deregister(g)
}

// spent is what threads take for an operation.
type spent struct {
	elapsedNs int64
	cpuNs     atomic.Int64
	err       atomic.String
}

// by has this many threads begin op at the same time, and waits for them.
func (s *spent) by(threads int, op func(i int) error) {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-begin
			beganNs := threadCPUNs()
			if err := op(i); err != nil {
				s.err.Store(err.Error())
			}
			s.cpuNs.Add(threadCPUNs() - beganNs)
		})
	}
	ready.Wait()
	began := time.Now()
	close(begin)
	done.Wait()
	s.elapsedNs += int64(time.Since(began))
}

func threadCPUNs() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // it can't fail
	return t.Nano()
}
