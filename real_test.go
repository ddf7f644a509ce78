package pinwheel

import (
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
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
		m, th := open(t, Options{Policy: policy, Provider: p})
		for i := range 200 {
			start := all.Start + mem.Addr(i%regions)*regionBytes
			transfer(t, th, mem.Range{Start: start, End: start + regionBytes}, 1)
			time.Sleep(100 * time.Microsecond)
		}
		if m.helper != nil {
			m.helper.Close() // it is busy: stop it, so that both numbers are of one moment
		}
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
