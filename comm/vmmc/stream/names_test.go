package stream

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/broker/brokertest"
	"pinwheel/internal/testwait"
)

// Both ends have names at the brokers of their nodes.
func TestStreamBetweenNodes(t *testing.T) {
	testwait.Bound(t)
	open := func(name, node, other string) (n *vmmc.Node, address string) {
		socket, at, _ := brokertest.Node(t, broker.Remote{Name: node, Token: "0123456789abcdef0123456789abcdef"})
		n, err := vmmc.Open(vmmc.Options{
			Name: name, Broker: socket, Listen: []string{"node:" + name}, Nodes: []string{other},
			Heartbeat: testwait.Limit / 2, Warn: func(m string) { t.Logf("warned: %s", m) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n, fmt.Sprintf("node:%s@%s", name, at)
	}
	a, atA := open("a", "here", "there")
	b, atB := open("b", "there", "here")
	l := listen(t, b, Options{Peers: vmmc.Permissions{Peers: []string{"a@here"}}})
	o := Options{Peers: vmmc.Permissions{Peers: []string{"b@there"}}}
	if _, err := Dial(context1(t), a, atB, service, o); err == nil || !strings.Contains(err.Error(), "@HOST:PORT") {
		t.Errorf("without an address that the other node knows: %v", err)
	}
	o.Address = atA
	c, err := Dial(context1(t), a, atB, service, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		_, _ = io.WriteString(c, "across")
		_ = c.CloseWrite()
	}()
	if got, err := io.ReadAll(s); string(got) != "across" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// A name means another process to a peer of another user, unless it says whose it is.
func TestPeersFindTheNameOfThisUser(t *testing.T) {
	n := openNode(t, "a", "names")
	_, name, _ := strings.Cut(n.Addresses()[0], ":")
	want := fmt.Sprintf("node:%d/%s", os.Geteuid(), name)
	for _, peer := range []string{"node:peer", "node:7/peer"} {
		if got, err := new(Options).reachable(n, peer); got != want || err != nil {
			t.Errorf("%s finds this node at %q, %v", peer, got, err)
		}
	}
	if got, err := new(Options).reachable(n, "tcp:peer:7"); err == nil {
		t.Errorf("a peer on another network finds it at %q", got)
	}
}

// Requests of one peer leave room for those of others.
func TestOnePeerHasAShareOfTheBacklog(t *testing.T) {
	testwait.Bound(t)
	n := openNode(t, "b", "shared")
	l := listen(t, n, Options{Peers: everyone.Peers, Backlog: 4})
	nowhere := "unix:" + testwait.ShortDir(t) + "/nobody" // they wait until the listener closes
	for k := range 10 {
		peer := "a"
		if k == 9 {
			peer = "c"
		}
		r := request{firstInbox + uint32(k), nowhere}
		b := r.encode()
		l.mu.Lock()
		copy(l.memory[k*slotBytes:], b)
		l.mu.Unlock()
		l.asked(vmmc.Notification{Peer: peer, Offset: uint64(k * slotBytes), Bytes: uint64(len(b))})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of["a"] != 2 || l.of["c"] != 1 || l.begun != 3 {
		t.Errorf("%d connections wait, of the peers %v", l.begun, l.of)
	}
}
