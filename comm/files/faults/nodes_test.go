package faults

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/files/transfer"
	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

const (
	largeBytes = 64 << 20 // 64 MiB: it takes some seconds, so that things happen meanwhile
	otherBytes = 1 << 20  // 1 MiB, of a file that shows the way that bytes take
	filesPort  = ":18520"
	endPort    = ":18521" // whoever connects there ends the server
	statsPort  = ":18522" // has the counters of the server, by HTTP
)

// TestTwoNodes runs on both guests of the test bed at the same time: node 0 serves, and node 1 gets files and breaks
// the network between them.
func TestTwoNodes(t *testing.T) {
	inGuests(t, "2")
	testwait.BoundAt(t, 4*testwait.Limit)
	if os.Getenv("TESTBED_NODE") == "0" {
		serveUntilToldSo(t)
		return
	}
	shell(t, "modprobe sch_netem")
	n := open(t, "client", "tcp:"+os.Getenv("TESTBED_ADDR")+":0")
	defer func() {
		for { // node 0 may not hear it at once after what was done to the network
			c, err := net.DialTimeout("tcp", os.Getenv("TESTBED_PEER")+endPort, time.Second)
			if err == nil {
				c.Close()
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for _, f := range networkFaults {
		t.Run(f.name, func(t *testing.T) { f.test(t, n) })
	}
}

func serveUntilToldSo(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "large"), content(largeBytes))
	write(t, filepath.Join(dir, "other"), content(otherBytes))
	l, err := net.Listen("tcp", os.Getenv("TESTBED_ADDR")+endPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	counters, err := net.Listen("tcp", os.Getenv("TESTBED_ADDR")+statsPort)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, dir, "tcp:"+os.Getenv("TESTBED_ADDR")+filesPort)
	tells := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(s.Stats()); err != nil {
			t.Logf("counters: %v", err) // the network is broken, most likely
		}
	})}
	go func() { _ = tells.Serve(counters) }() // until it is closed
	defer tells.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	t.Logf("%+v", s.Stats())
}

// dialPeer returns a client to which bytes come by RDMA.
func dialPeer(t *testing.T, n *vmmc.Node) *files.Client {
	t.Helper()
	c := dial(t, n, "tcp:"+os.Getenv("TESTBED_PEER")+filesPort)
	awaitRDMA(t, c, "other", otherBytes)
	return c
}

// sent returns the counters of the server, over a network that works.
func sent(t *testing.T) (st files.Stats) {
	t.Helper()
	client := http.Client{Timeout: heartbeat}
	defer client.CloseIdleConnections()
	testwait.Until(t, "the counters of the server", func() bool {
		r, err := client.Get("http://" + os.Getenv("TESTBED_PEER") + statsPort)
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return json.NewDecoder(r.Body).Decode(&st) == nil
	})
	return st
}

// get gets the large file in the background.
type get struct {
	client *files.Client
	local  string
	before files.Stats // of the server
	meter  transfer.Meter
	result transfer.Result
	ended  chan error
}

func startGet(c *files.Client, local string, before files.Stats, resume bool) *get {
	g := &get{client: c, local: local, before: before, ended: make(chan error, 1)}
	go func() {
		var err error
		o := transfer.Options{Resume: resume, Meter: &g.meter}
		g.result, err = transfer.Get(context.Background(), c, "large", local, o)
		g.ended <- err
	}()
	return g
}

// underWay starts a get, and waits until some of the file has arrived by RDMA, and more is on its way.
func underWay(t *testing.T, n *vmmc.Node, resume bool) *get {
	t.Helper()
	c := dialPeer(t, n)
	g := startGet(c, filepath.Join(t.TempDir(), "f"), sent(t), resume)
	testwait.Until(t, "some of the file", func() bool { return g.meter.Bytes.Load() >= 2<<20 })
	if g.meter.Bytes.Load() == largeBytes {
		t.Fatal("the network is too fast for this test")
	}
	if way := g.client.Transport(); way != files.ByRDMA {
		t.Errorf("%d bytes have come by %s", g.meter.Bytes.Load(), way)
	}
	return g
}

// whole waits for the end of the get, which must have all bytes, and returns what the server has sent since before.
func (g *get) whole(t *testing.T) (rdma, tls int64) {
	t.Helper()
	if err := testwait.Receive(t, "the end of the get", g.ended); err != nil {
		t.Error(err)
	}
	same(t, g.local, content(largeBytes))
	after := sent(t)
	rdma, tls = after.BytesRDMA-g.before.BytesRDMA, after.BytesTLS-g.before.BytesTLS
	t.Logf("%d bytes by RDMA, %d by TLS", rdma, tls)
	return rdma, tls
}

// dropRDMA has the packets of RDMA dropped in one direction, and nothing else, between calls of its results.
func dropRDMA(t *testing.T) (drop, restore func()) {
	t.Helper()
	shell(t, "modprobe -a sch_prio cls_u32 act_gact")
	later(t, "tc qdisc del dev net0 root")
	shell(t, "tc qdisc add dev net0 root handle 1: prio")
	return func() {
			shell(t, "tc filter add dev net0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop")
		}, func() {
			shell(t, "tc filter del dev net0 parent 1:")
		}
}

// networkFaults are what happens to the network. Both nodes go on afterwards.
var networkFaults = []struct {
	name string
	test func(t *testing.T, n *vmmc.Node)
}{
	{"a network that loses packets loses no bytes", func(t *testing.T, n *vmmc.Node) {
		g := underWay(t, n, false)
		later(t, "tc qdisc del dev net0 root")
		shell(t, "tc qdisc add dev net0 root netem loss 2%")
		if rdma, _ := g.whole(t); rdma == 0 {
			t.Error("nothing went by RDMA")
		}
	}},
	{"a copy outlives a link that is down for a while", func(t *testing.T, n *vmmc.Node) {
		g := underWay(t, n, false)
		later(t, "ip link set net0 up")
		shell(t, "ip link set net0 down")
		time.Sleep(heartbeat / 4) // nothing tells how long it is down
		shell(t, "ip link set net0 up")
		if rdma, _ := g.whole(t); rdma == 0 {
			t.Error("nothing went by RDMA")
		}
	}},
	{"a cable that is pulled ends the copy, and another one goes on from there", func(t *testing.T, n *vmmc.Node) {
		g := underWay(t, n, true)
		later(t, "ip link set net0 up")
		shell(t, "ip link set net0 down")
		if err := testwait.Receive(t, "the end of the get", g.ended); !errors.Is(err, files.ErrPeerGone) {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(g.local); err == nil {
			t.Error("half of a file has its name")
		}
		shell(t, "ip link set net0 up")
		again := startGet(dialPeer(t, n), g.local, g.before, true)
		if rdma, _ := again.whole(t); rdma == 0 {
			t.Error("nothing went by RDMA")
		}
		if again.result.ResumedBytes == 0 || again.result.Files != 1 {
			t.Errorf("%+v", again.result)
		}
	}},
	{"a copy whose RDMA fails goes on by TCP, and the next one by RDMA again", func(t *testing.T, n *vmmc.Node) {
		drop, restore := dropRDMA(t)
		g := underWay(t, n, false)
		for drop(); g.meter.Bytes.Load() > largeBytes/2; drop() { // a program takes long to start on a busy machine
			restore()
			g.whole(t)
			g = underWay(t, n, false)
		}
		if rdma, tls := g.whole(t); rdma == 0 || tls == 0 {
			t.Error("it did not change its way")
		}
		restore()
		awaitRDMA(t, g.client, "other", otherBytes)
		if rdma, _ := startGet(g.client, g.local, sent(t), false).whole(t); rdma < largeBytes/2 {
			t.Error("the next one did not go by RDMA")
		}
	}},
}
