package vmmc

import (
	"hash/crc64"
	"net"
	"net/rpc"
	"os"
	"slices"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// TestTwoNodes runs on both guests of the test bed at the same time (make test-guests). Node 0 exports and does
// what node 1 asks of it, over a connection of their own. Node 1 imports, sends and judges.
func TestTwoNodes(t *testing.T) {
	if os.Getenv("TESTBED_NODES") != "2" {
		t.Skip("needs the two guests of the test bed (make test-guests)")
	}
	const port = "18516"
	if os.Getenv("TESTBED_NODE") == "0" {
		x := &There{t: t}
		x.serve(net.JoinHostPort(os.Getenv("TESTBED_ADDR"), port))
		return
	}
	there := dialThere(t, net.JoinHostPort(os.Getenv("TESTBED_PEER"), port))
	defer there.Close()
	for _, tr := range transports[2:5] {
		t.Run(tr.name, func(t *testing.T) {
			for _, s := range slices.Concat(sentencesBetweenNodes, updatesBetweenNodes) {
				t.Run(s.name, func(t *testing.T) { s.test(t, tr.far(t, there, FarOptions{}, nil)) })
			}
		})
	}
	for _, name := range []string{"tcp with token", "rdma"} { // of those over TLS one is enough
		tr := transportOf(t, name)
		t.Run("faults over "+name, func(t *testing.T) {
			for _, f := range faultsBetweenNodes {
				t.Run(f.name, func(t *testing.T) { f.test(t, tr, there) })
			}
		})
	}
}

// dialThere waits until the other node has booted and listens.
func dialThere(t *testing.T, address string) *rpc.Client {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return rpc.NewClient(c)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// far is an importer of this node and an exporter of the other one.
type far struct {
	transport
	there    *rpc.Client
	importer *Node
	address  string
	warns    bool // the exporter may
}

// far makes both. Those who expect warnings of the importer take them.
func (tr transport) far(t *testing.T, there *rpc.Client, o FarOptions, warn func(string)) *far {
	t.Helper()
	testwait.Bound(t)
	w := &far{transport: tr, there: there, warns: warn != nil}
	o.Transport = tr.name
	w.ask(t, "Open", o, &w.address)
	t.Cleanup(func() { // after the importer has closed
		var warned []string
		if w.ask(t, "Close", true, &warned); len(warned) > 0 && !w.warns {
			t.Errorf("node 0 warned: %q", warned)
		}
	})
	n := tr.options(t, "sender")
	n.Heartbeat, n.Warn = o.Heartbeat, warn
	w.importer = openNode(t, n)
	return w
}

func (w *far) ask(t *testing.T, method string, arg, answer any) {
	t.Helper()
	if err := w.there.Call("There."+method, arg, answer); err != nil {
		t.Fatalf("node 0: %s: %v", method, err)
	}
}

// tell is ask without an answer.
func (w *far) tell(t *testing.T, method string, arg any) {
	t.Helper()
	w.ask(t, method, arg, new(bool))
}

// export makes one for the sender, unless it names others.
func (w *far) export(t *testing.T, e FarExport) {
	t.Helper()
	if e.Peers == nil {
		e.Peers = sender.Peers
	}
	w.tell(t, "Export", e)
}

func (w *far) imports(t *testing.T, id uint32) *Import {
	t.Helper()
	i, err := w.importer.Import(testContext(t), id, w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t, i)
	return i
}

// pair is export 1, whose notifications wait, and its import.
func (w *far) pair(t *testing.T, size int, o ExportOptions) *Import {
	t.Helper()
	w.export(t, FarExport{ID: 1, Bytes: size, Options: o})
	w.tell(t, "Want", Wanting{1, "block"})
	return w.imports(t, 1)
}

// has fails the test if the bytes from an offset of export 1 are not as they should be.
func (w *far) has(t *testing.T, off int, want string) {
	t.Helper()
	var got []byte
	if w.ask(t, "Look", Place{1, off, len(want)}, &got); string(got) != want {
		t.Errorf("at %d there is %.40q, not %.40q", off, got, want)
	}
}

// equal compares export 1 with memory here.
func (w *far) equal(t *testing.T, local []byte) {
	t.Helper()
	var sum uint64
	w.ask(t, "Sum", uint32(1), &sum)
	if sum == crc64.Checksum(local, crc) {
		return
	}
	var remote []byte
	w.ask(t, "Look", Place{1, 0, len(local)}, &remote)
	t.Fatalf("byte %d differs", firstDifference(local, remote))
}

func (w *far) notification(t *testing.T, id uint32) (n Notification) {
	t.Helper()
	w.ask(t, "Wait", id, &n)
	return n
}

// watch begins Watch. The answer is its error.
func (w *far) watch(x Watching) (answer chan error) {
	answer = make(chan error, 1)
	go func() { answer <- w.there.Call("There.Watch", x, new(bool)) }()
	return answer
}
