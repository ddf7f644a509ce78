package pinwheel

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
	"pinwheel/vmwatch"
)

// With real pinning by io_uring under every policy, what the kernel counts for
// this process is what the Manager says.
func TestAccountingAgreesWithTheKernel(t *testing.T) {
	const regionBytes, regions = 256 << 10, 8
	p, err := uring.Open(uring.Options{})
	verbstest.Available(t, err)
	defer p.Close()
	verbstest.NeedPinned(t, p, regionBytes*regions)
	_, all := verbstest.Map(t, regionBytes*regions)
	for _, policy := range []Policy{Pinwheel, Paper, LeavePinned, OnDemand} {
		m, th := start(t, Options{Policy: policy, Provider: p})
		for i := range 200 {
			start := all.Start + mem.Addr(i%regions)*regionBytes
			transfer(t, th, mem.Range{Start: start, End: start + regionBytes}, 1)
			time.Sleep(100 * time.Microsecond)
		}
		m.engine.Close() // the helper is busy: stop it, so that both numbers are of one moment
		kernel, err := verbs.StatusBytes("VmPin")
		if err != nil {
			t.Fatal(err)
		}
		if got := pinned(m); got != kernel {
			t.Errorf("%s: %d bytes pinned, the kernel says %d", policy, got, kernel)
		}
		t.Logf("%s: %d bytes pinned, %d by the helper registered, %d deregistered", policy, kernel,
			m.Stats().Cache.HelperRegisters, m.Stats().Cache.HelperDeregisters)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkPeriodic is a program that computes and uses eight regions in turn,
// registered by io_uring, under each policy. late-% is the share of uses whose
// registration the path had to do again; pinned-% the mean of pinned memory,
// seen at each use, against what leave-pinned keeps; helper-cpu-% the helper's
// share of one core.
func BenchmarkPeriodic(b *testing.B) {
	const regionBytes, regions = 256 << 10, 8
	p, err := uring.Open(uring.Options{})
	verbstest.Available(b, err)
	defer p.Close()
	verbstest.NeedPinned(b, p, regionBytes*regions)
	buffer, all := verbstest.Map(b, regionBytes*regions)
	clear(buffer) // registering memory that was never touched faults it in
	for _, policy := range []Policy{LeavePinned, Paper, Pinwheel} {
		for _, gap := range []time.Duration{200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
			b.Run(string(policy)+"/"+gap.String(), func(b *testing.B) {
				m, th := start(b, Options{Policy: policy, Provider: p})
				step := func(i int) {
					first := all.Start + mem.Addr(i%regions)*regionBytes
					transfer(b, th, mem.Range{Start: first, End: first + regionBytes}, Op(i%regions))
					time.Sleep(gap)
				}
				for i := range 10 * regions {
					step(i)
				}
				before, begin := m.Stats(), time.Now()
				var pinnedSum int64
				n := 0
				for b.Loop() {
					step(n)
					pinnedSum += pinned(m)
					n++
				}
				after, elapsed := m.Stats(), time.Since(begin)
				b.ReportMetric(100*float64(after.Cache.Late-before.Cache.Late)/float64(n), "late-%")
				b.ReportMetric(100*float64(pinnedSum)/float64(n)/(regionBytes*regions), "pinned-%")
				b.ReportMetric(100*float64(after.Helper.CPUNs-before.Helper.CPUNs)/float64(elapsed), "helper-cpu-%")
				b.ReportMetric(float64(after.StallNs-before.StallNs)/float64(n), "stall-ns/op")
			})
		}
	}
}

// With a watcher, memory that was unmapped and mapped again at the same
// address is registered again, though nobody has called Invalidate.
func TestRemappedMemoryIsNotAHit(t *testing.T) {
	const n = 64 << 10
	p, err := uring.Open(uring.Options{})
	verbstest.Available(t, err)
	t.Cleanup(func() { p.Close() })
	verbstest.NeedPinned(t, p, n)
	m, th := start(t, Options{Provider: p, Policy: LeavePinned, Watch: "auto"})
	if mech := m.watcher.Mechanism(); mech == vmwatch.None {
		t.Skip("no mechanism of vmwatch works here: nothing is cached")
	}
	buffer, r := verbstest.Map(t, n)
	clear(buffer)
	transfer(t, th, r, 0)
	for range 1000 { // userfaultfd trusts a registration until the process, the runtime included, takes a page fault
		if transfer(t, th, r, 0); m.Stats().Cache.Hits == 1 {
			break
		}
	}
	if s := m.Stats().Cache; s.First != 1 || s.Hits != 1 {
		t.Fatalf("before the change: %+v", s)
	}
	if err := unix.Madvise(buffer, unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	clear(buffer)
	transfer(t, th, r, 0)
	if s := m.Stats().Cache; s.Hits != 1 {
		t.Errorf("after the change: %+v", s)
	}
}
