package stream

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/broker/brokertest"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(brokertest.Main{M: m}) }

const service = 80

var everyone = Options{Peers: vmmc.Permissions{Peers: []string{"a", "b"}}}

// networks are those over which streams go: shared memory, and connections.
var networks = map[string]func(t testing.TB) string{
	"shared": func(t testing.TB) string { return "unix:" + filepath.Join(testwait.ShortDir(t), "s") },
	"tcp":    func(testing.TB) string { return "tcp:127.0.0.1:0" },
	"names":  func(testing.TB) string { return "node:" + rand.Text() },
	"rdma": func(t testing.TB) string {
		rdmatest.Need(t)
		return "tcp:127.0.0.1:0"
	},
}

func openNode(t testing.TB, name, network string) *vmmc.Node {
	t.Helper()
	n, err := vmmc.Open(vmmc.Options{
		Name: name, Listen: []string{networks[network](t)}, Token: "0123456789abcdef0123456789abcdef",
		Broker: brokertest.Socket, Heartbeat: testwait.Limit / 2, Warn: func(m string) { t.Logf("warned: %s", m) },
		NoRDMA: network == "tcp",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func listen(t testing.TB, n *vmmc.Node, o Options) *Listener {
	t.Helper()
	l, err := Listen(n, service, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func context1(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

// pipe returns both ends of a connection.
func pipe(t testing.TB, network string, o Options) (dialled, accepted *Conn, a, b *vmmc.Node) {
	t.Helper()
	testwait.Bound(t)
	a, b = openNode(t, "a", network), openNode(t, "b", network)
	l := listen(t, b, o)
	dialled, err := Dial(context1(t), a, b.Addresses()[0], service, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted = c.(*Conn)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted, a, b
}
