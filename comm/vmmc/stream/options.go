package stream

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"pinwheel/comm/vmmc"
)

// Options configure a Listener, or a Dial.
type Options struct {
	// Peers are those who may connect to a Listener, and those to whom Dial may connect: their nodes send into
	// the memory of this one. The zero value permits nobody.
	Peers vmmc.Permissions
	// Ring is how many bytes of the peer wait at most to be read. 0 stands for 256 KiB.
	Ring int
	// Address is where the peer finds the node of Dial. Empty: the first of its addresses on the network
	// of the peer. One with a name at the broker must be given to peers on other nodes, with the broker of this one:
	// node:NAME@HOST:PORT.
	Address string
	// Backlog is how many connections of a Listener wait at most, to be made and for Accept, half of them for one
	// peer. More are asked for again by those who dial, as are those beyond the MaxImporters of Peers. 0 stands for 128.
	Backlog int
	// Timeout bounds the steps of making a connection, but for the wait for the Listener, and the time for which
	// the memory of a connection that was closed waits for the peer to hear of that. 0 stands for 10 seconds.
	Timeout time.Duration
	// Warn gets a line for each request that a Listener could not serve: who dials hears nothing of that. nil:
	// nobody does.
	Warn func(message string)
}

const (
	minRing = 4 << 10 // 4 KiB
	maxRing = 1 << 30 // 1 GiB
)

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	o.Ring = cmp.Or(o.Ring, 256<<10)
	o.Backlog = cmp.Or(o.Backlog, 128)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Ring < minRing || o.Ring > maxRing || o.Backlog < 0 || o.Timeout < 0 || len(o.Address) > maxAddress {
		return fmt.Errorf("stream: a ring of %d bytes, a backlog of %d, a timeout of %v, an address of %d bytes",
			o.Ring, o.Backlog, o.Timeout, len(o.Address))
	}
	return nil
}

// reachable returns where a peer at an address finds a node.
func (o *Options) reachable(n *vmmc.Node, peer string) (string, error) {
	if o.Address != "" {
		return o.Address, nil
	}
	network, at, _ := strings.Cut(peer, ":")
	addresses := n.Addresses()
	k := slices.IndexFunc(addresses, func(a string) bool { return strings.HasPrefix(a, network+":") })
	if k < 0 || len(addresses[k]) > maxAddress-len(maxUID) {
		return "", fmt.Errorf("stream: the peer at %s must reach this node, too, and its addresses are %q", peer, addresses)
	}
	if network != "node" {
		return addresses[k], nil
	}
	_, name, _ := strings.Cut(addresses[k], ":")
	mine := fmt.Sprintf("node:%d/%s", os.Geteuid(), name) // the peer may be of another user
	if strings.Contains(at, "@") {
		return "", fmt.Errorf("stream: the peer at %s is on another node: give %s@HOST:PORT, with the broker of this one, as the address",
			peer, mine)
	}
	return mine, nil
}

// maxUID is the longest that a name at the broker can begin with.
const maxUID = "4294967295/"
