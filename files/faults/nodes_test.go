package faults

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/files"
	"pinwheel/files/transfer"
	"pinwheel/internal/testwait"
	"pinwheel/vmmc"
)

const (
	largeBytes = 128 << 20 // 128 MiB: it takes some seconds, so that things happen meanwhile
	filesPort  = ":18520"
	endPort    = ":18521" // whoever connects there ends the server
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
	l, err := net.Listen("tcp", os.Getenv("TESTBED_ADDR")+endPort)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, _ := serve(t, dir, "tcp:"+os.Getenv("TESTBED_ADDR")+filesPort)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	t.Logf("%+v", s.Stats())
}

func dialPeer(t *testing.T, n *vmmc.Node) *files.Client {
	t.Helper()
	return dial(t, n, "tcp:"+os.Getenv("TESTBED_PEER")+filesPort)
}

// get gets a file in the background.
type get struct {
	meter  transfer.Meter
	result transfer.Result
	ended  chan error
}

func startGet(c *files.Client, name, local string, resume bool) *get {
	g := &get{ended: make(chan error, 1)}
	go func() {
		var err error
		g.result, err = transfer.Get(context.Background(), c, name, local, transfer.Options{Resume: resume, Meter: &g.meter})
		g.ended <- err
	}()
	return g
}

// some waits until some of the file has arrived, and more is on its way.
func (g *get) some(t *testing.T) {
	t.Helper()
	testwait.Until(t, "some of the file", func() bool { return g.meter.Bytes.Load() >= 2<<20 })
	if g.meter.Bytes.Load() == largeBytes {
		t.Fatal("the network is too fast for this test")
	}
}

// networkFaults are what happens to the network. Both nodes go on afterwards.
var networkFaults = []struct {
	name string
	test func(t *testing.T, n *vmmc.Node)
}{
	{"a network that loses packets loses no bytes", func(t *testing.T, n *vmmc.Node) {
		c := dialPeer(t, n)
		later(t, "tc qdisc del dev net0 root")
		shell(t, "tc qdisc add dev net0 root netem loss 2%")
		local := filepath.Join(t.TempDir(), "f")
		g := startGet(c, "large", local, false)
		if err := testwait.Receive(t, "the end of the get", g.ended); err != nil {
			t.Error(err)
		}
		same(t, local, content(largeBytes))
	}},
	{"a copy outlives a link that is down for a while", func(t *testing.T, n *vmmc.Node) {
		c := dialPeer(t, n)
		local := filepath.Join(t.TempDir(), "f")
		g := startGet(c, "large", local, false)
		g.some(t)
		later(t, "ip link set net0 up")
		shell(t, "ip link set net0 down")
		time.Sleep(heartbeat / 4) // nothing tells how long it is down
		shell(t, "ip link set net0 up")
		if err := testwait.Receive(t, "the end of the get", g.ended); err != nil {
			t.Error(err)
		}
		same(t, local, content(largeBytes))
	}},
	{"a cable that is pulled ends the copy, and another one goes on from there", func(t *testing.T, n *vmmc.Node) {
		c := dialPeer(t, n)
		local := filepath.Join(t.TempDir(), "f")
		g := startGet(c, "large", local, true)
		g.some(t)
		later(t, "ip link set net0 up")
		shell(t, "ip link set net0 down")
		if err := testwait.Receive(t, "the end of the get", g.ended); !errors.Is(err, files.ErrPeerGone) {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(local); err == nil {
			t.Error("half of a file has its name")
		}
		shell(t, "ip link set net0 up")
		again := startGet(dialPeer(t, n), "large", local, true)
		if err := testwait.Receive(t, "the end of the second get", again.ended); err != nil {
			t.Error(err)
		}
		if again.result.ResumedBytes == 0 || again.result.Files != 1 {
			t.Errorf("%+v", again.result)
		}
		same(t, local, content(largeBytes))
	}},
}
