package vmmc

import (
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs/verbstest"
)

// registeredBytes are those that a node has registered for importers.
func registeredBytes(n *Node) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lessor.RegisteredBytes()
}

// keepLease waits until messages to i go by RDMA, and has them do so until the test gives the lease back: else it ends
// while it is unused, and so whenever the machine stops this process for a while. A failure of RDMA ends it, too.
func keepLease(t testing.TB, i *Import) (giveBack func()) {
	t.Helper()
	ctx := testContext(t)
	var s *rdmaSender
	testwait.Until(t, "a lease that stays", func() bool {
		i.AwaitRDMA(ctx)
		i.link.mu.Lock()
		defer i.link.mu.Unlock()
		s = i.link.rdma
		return i.rdma() && s.holder.Use(i.number, clock.NowNs()) // as a message that is on its way
	})
	return func() {
		i.link.mu.Lock()
		defer i.link.mu.Unlock()
		now := clock.NowNs()
		s.holder.Complete(i.number, true, predictor.Use{StartNs: now, EndNs: now}, now)
	}
}

// An export that stays idle is not registered any more. The next message goes through the connection and asks for
// it again.
func TestRDMALeaseOfAnIdleExportEnds(t *testing.T) {
	w := overRDMA(t).begin(t)
	memory, _, i := w.pair(t, 1<<20, ExportOptions{})
	for range 3 {
		var with int64
		testwait.Until(t, "a lease", func() bool { // each message asks for one
			send(t, i, "again", 100, SendOptions{})
			if !i.RDMA() || registeredBytes(w.exporter) != 1<<20 {
				return false
			}
			with = verbstest.StatusBytes(t, "VmPin")
			return registeredBytes(w.exporter) == 1<<20 // and was meanwhile
		})
		arrives(t, memory, 100, "again")
		testwait.Until(t, "nothing is registered", func() bool { return registeredBytes(w.exporter) == 0 })
		testwait.Until(t, "nor pinned", func() bool { return verbstest.StatusBytes(t, "VmPin") == with-1<<20 },
			func() any { return with - verbstest.StatusBytes(t, "VmPin") })
		if i.RDMA() {
			t.Error("the importer believes that it has a lease")
		}
	}
}

// Leases go from one export to another if there is no room for both.
func TestRDMALeasesStayWithinTheLimit(t *testing.T) {
	w := overRDMA(t).begin(t, func(o *Options) { o.MaxPeerPinned = mem.PageSize })
	var imports []*Import
	var memories [][]byte
	for id := range uint32(2) {
		memories = append(memories, w.memory(t, 100))
		w.export(t, id, memories[id], sender, ExportOptions{})
		i, err := w.importer.Import(testContext(t), id, w.address)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, i)
	}
	for k := range 20 {
		i, memory := imports[k%2], memories[k%2]
		send(t, i, string(rune('a'+k)), uint64(k), SendOptions{})
		arrives(t, memory, k, string(rune('a'+k)))
		if got := registeredBytes(w.exporter); got > mem.PageSize {
			t.Fatalf("%d bytes are registered", got)
		}
		testwait.Until(t, "it has the lease", func() bool { // which may go back meanwhile
			send(t, i, string(rune('a'+k)), uint64(k), SendOptions{})
			return i.RDMA()
		})
	}
}
