package vmmc

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// Import would wait until the context ends.
func TestReachWaitsForNobody(t *testing.T) {
	testwait.Bound(t)
	n := openNode(t, Options{Name: "sender"})
	for address, want := range map[string]error{
		"unix:" + filepath.Join(testwait.ShortDir(t), "none"): syscall.ENOENT, "tcp:127.0.0.1:1": syscall.ECONNREFUSED,
	} {
		if err := n.Reach(testContext(t), address); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What follows goes through the connection. If nothing does, it is given up.
func TestReachLeavesAConnectionForAWhile(t *testing.T) {
	w := transports[0].begin(t)
	w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
	n := openNode(t, Options{Name: "sender", Heartbeat: time.Second})
	if err := n.Reach(testContext(t), w.address); err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	reached := n.outbound[w.address].out
	n.mu.Unlock()
	i, err := n.Import(testContext(t), 1, w.address)
	if err != nil || i.link != reached {
		t.Fatalf("another connection, %v", err)
	}
	i.Unimport()
	gone := func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.outbound) == 0 }
	testwait.Until(t, "the end of the connection", gone)
	if err := n.Reach(testContext(t), w.address); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the end of a connection that nobody has used", gone)
}
