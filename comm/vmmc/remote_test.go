package vmmc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/broker/brokertest"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/internal/testwait"
)

// identities are those of brokers.
func identities(t *testing.T) map[string]func(name string) broker.Remote {
	return map[string]func(string) broker.Remote{
		"token": func(name string) broker.Remote { return broker.Remote{Name: name, Token: testToken} },
		"certificates": func(name string) broker.Remote {
			c := certificateOf(t, name)
			return broker.Remote{Certificate: &c, Authorities: testAuthority.pool, Name: "not this one"}
		},
	}
}

// Brokers bring processes of two nodes together, and may end then.
func TestImportFromAnotherNode(t *testing.T) {
	for kind, identity := range identities(t) {
		t.Run(kind, func(t *testing.T) {
			testwait.Bound(t)
			here, _, stopHere := brokertest.Node(t, identity("here"))
			there, address, stopThere := brokertest.Node(t, identity("there"))
			address = "node:receiver@" + address
			importer := openNode(t, Options{Name: "sender", Broker: here})
			early := importer.ImportAsync(1, address) // before its exporter is there
			exporter := openNode(t, Options{
				Broker: there, Listen: []string{"node:receiver"}, Nodes: []string{"here"}, Warn: quiet,
			})
			memory, err := exporter.Alloc(100)
			if err != nil {
				t.Fatal(err)
			}
			e, err := exporter.Export(1, memory, Permissions{Peers: []string{"sender@here"}}, ExportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e.Block()
			i, err := early.Result()
			if err != nil || i.Shared() {
				t.Fatal(i, err)
			}
			stopHere()
			stopThere()
			send(t, i, "hello", 3, SendOptions{Notify: true})
			if got := wait(t, e); got.Peer != "sender@here" || string(memory[3:8]) != "hello" {
				t.Errorf("%+v, %q", got, memory[:10])
			}
		})
	}
}

func TestOnlyNodesThatTheExporterNamesConnect(t *testing.T) {
	testwait.Bound(t)
	identity := identities(t)["token"]
	here, _, _ := brokertest.Node(t, identity("here"))
	there, address, _ := brokertest.Node(t, identity("there"))
	liar, _, _ := brokertest.Node(t, broker.Remote{Name: "here", Token: strings.Repeat("x", 32)})
	alone := filepath.Join(t.TempDir(), "b")
	brokertest.Serve(t, alone, broker.Options{AllUsers: true})
	for name, nodes := range map[string][]string{"open": {"*"}, "private": nil, "other": {"elsewhere"}} {
		n := openNode(t, Options{Broker: there, Listen: []string{"node:" + name}, Nodes: nodes})
		if _, err := n.Export(1, make([]byte, 10), Permissions{Peers: []string{"x@here", "x"}}, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		broker, name, address string
		want                  error
	}{
		"the right one":                      {here, "x", "node:open@" + address, nil},
		"a name that is not permitted":       {here, "y", "node:open@" + address, ErrNotPermitted},
		"a process that lets nobody in":      {here, "x", "node:private@" + address, broker.ErrRefused},
		"a process that lets others in":      {here, "x", "node:other@" + address, broker.ErrRefused},
		"another token":                      {liar, "x", "node:open@" + address, broker.ErrRefused},
		"a broker without identity":          {alone, "x", "node:open@" + address, broker.ErrRefused},
		"an address at which nobody listens": {here, "x", "node:open@127.0.0.1:1", broker.ErrRefused},
	} {
		n := openNode(t, Options{Name: c.name, Broker: c.broker})
		if _, err := n.Import(testContext(t), 1, c.address); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a stranger calls itself never is the name of somebody else.
func TestNamesOfStrangersAreQualified(t *testing.T) {
	own := uint32(os.Geteuid())
	for _, c := range []struct {
		from       broker.Origin
		name, want string
	}{
		{broker.Origin{UID: own}, "x", "x"},
		{broker.Origin{UID: own}, "a/b@c", "a/b@c"}, // it is this user
		{broker.Origin{UID: own + 1}, "x", fmt.Sprintf("%d/x", own+1)},
		{broker.Origin{UID: own, Node: "n"}, "x", "x@n"},
		{broker.Origin{UID: own + 1, Node: "n"}, "x", fmt.Sprintf("%d/x@n", own+1)},
		{broker.Origin{UID: own + 1}, "x@n", ""},
		{broker.Origin{UID: own, Node: "n"}, "x@m", ""},
		{broker.Origin{UID: own, Node: "n"}, "1/x", ""},
	} {
		in := inbound{origin: &c.from, who: protocol.Identity{Name: c.name}}
		err := in.qualify()
		if c.want == "" && !errors.Is(err, ErrIdentity) || c.want != "" && (err != nil || in.who.Name != c.want) {
			t.Errorf("%q of %+v: %q, %v", c.name, c.from, in.who.Name, err)
		}
	}
}
