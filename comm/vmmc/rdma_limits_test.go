package vmmc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// limitRegions keeps this process from making another object of the device, as one that is full does: by the rdma
// controller of control groups. lift ends that.
func limitRegions(t *testing.T) (limit, lift func()) {
	t.Helper()
	if os.Getenv("TESTBED_NODES") == "" {
		t.Skip("makes a control group: runs in the test bed only (make test-guest)")
	}
	const root = "/sys/fs/cgroup"
	group := filepath.Join(root, "vmmc-"+strconv.Itoa(os.Getpid()))
	write := func(file, s string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	write(group+"/cgroup.procs", strconv.Itoa(os.Getpid()))
	t.Cleanup(func() {
		write(root+"/cgroup.procs", strconv.Itoa(os.Getpid()))
		_ = os.Remove(group) // it stays as long as something of it is there, and harms nobody
	})
	// Less than it has: an object that goes meanwhile makes no room.
	limit = func() { write(group+"/rdma.max", "rxe0 hca_handle=0 hca_object=0") }
	return limit, func() { write(group+"/rdma.max", "rxe0 hca_handle=max hca_object=max") }
}

// If the device has no room for an export, its messages come through the connection, and a line says so.
func TestRDMADeviceHasNoRoomForAnExport(t *testing.T) {
	limit, lift := limitRegions(t)
	warned := make(chan string, 9)
	w := overRDMA(t).begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
	_, _, first := w.pair(t, 100, ExportOptions{})
	memory := w.memory(t, 1<<16)
	w.export(t, 2, memory, sender, ExportOptions{})
	limit()
	second, err := w.importer.Import(testContext(t), 2, w.address)
	if err != nil {
		t.Fatal(err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, `"sender"`) || !strings.Contains(m, "connection") {
		t.Errorf("warned %q", m)
	}
	send(t, second, "hello", 10, SendOptions{})
	arrives(t, memory, 10, "hello")
	if second.RDMA() || throughConnection(second) != 1 {
		t.Error("it went by RDMA")
	}
	send(t, first, "fine", 0, SendOptions{})
	lift()
	third := w.memory(t, 100)
	w.export(t, 3, third, sender, ExportOptions{})
	send(t, w.imports(t, 3), "by RDMA again", 0, SendOptions{})
	arrives(t, third, 0, "by RDMA again")
}
