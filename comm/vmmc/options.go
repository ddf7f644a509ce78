package vmmc

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"os"
	"time"

	"pinwheel"
	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/console"
)

// Options configure a Node. The zero value makes one that exports to nobody, and that can import on this
// machine.
type Options struct {
	// Name is what others know this node by, if no certificate says it. Empty: host name and process.
	Name string
	// Listen are the addresses at which importers find this node: unix:PATH, tcp:HOST:PORT, or node:NAME, which
	// registers a name with the broker of this machine.
	Listen []string
	// Broker is the socket of the broker. Empty: that of this user, or else of the machine (broker.Socket).
	Broker string
	// Users are other users of this machine whose processes may connect through the broker. Their Permissions are
	// those of exports, as anybody's.
	Users []uint32
	// Nodes are other nodes from which processes of this user, and of Users, may connect through the brokers: by the
	// names in the certificates of these. "*" stands for all that the broker of this machine lets in.
	Nodes []string

	// Certificate identifies this node over TCP, to peers whose Authorities issued it. Its first DNS name, or
	// else its common name, is the name in Permissions. Its usage must allow servers and clients.
	Certificate *tls.Certificate
	// Authorities issue the certificates of peers. Needed with a Certificate.
	Authorities *x509.CertPool
	// Token identifies, over TCP and instead of certificates, all who know it; each says its own Name. It
	// must have 32 bytes at least and be random, as whoever guesses it is let in.
	Token string
	// TokenFile has the Token of those who have neither Token nor Certificate and use TCP on this machine
	// only. The first node writes it. It must be readable for its owner alone: those who can read it are the
	// same user. Empty: vmmc.token in $XDG_RUNTIME_DIR, or else in a directory of this user in os.TempDir.
	TokenFile string

	// Heartbeat is the silence after which a peer is gone. 0 stands for 5 seconds. A time in which this process did
	// not run, as its machine was paused, counts for a quarter of it at most.
	Heartbeat time.Duration
	// RevokeTimeout is how long Unexport waits for importers before it ends their connections. 0 stands for
	// Heartbeat.
	RevokeTimeout time.Duration
	// MaxConnections is how many importers' connections this node accepts at a time. 0 stands for 1024. Those
	// who have not proved yet who they are don't count: there are 64 of them at most, each for 3 seconds.
	MaxConnections int
	// MaxPeerConnections is how many of these may be of one peer: of one name and user. 0 stands for half of them.
	MaxPeerConnections int
	// MaxPinned bounds the bytes of exports that are registered for importers over RDMA, in whole pages and for each
	// importer, and MaxPeerPinned those of one connection. 0 stands for no bound. Messages to what finds no room go
	// through the connection.
	MaxPinned, MaxPeerPinned uint64
	// MaxExports is how many exports there may be at a time. 0 stands for 65536.
	MaxExports int
	// MaxOps is how many messages to one exporter may wait at a time. 0 stands for 4096.
	MaxOps int
	// NoRDMA carries messages through TCP connections even between nodes that both have an RDMA device.
	NoRDMA bool
	// Manager are the options of the Manager that registers what is sent by RDMA, when it is first needed. Its
	// RDMADevice is also what importers of this node reach; empty: the first one. Its Provider is not used.
	// An empty Watch stands for auto.
	Manager pinwheel.Options
	// Warn gets a line whenever something fails that no caller hears of: at most 20 a minute about what this
	// process does, and as many about what others do. nil: standard error.
	Warn func(message string)
}

// minHeartbeat is the least silence that a node bears.
const minHeartbeat = 10 * time.Millisecond

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	if o.Name == "" {
		host, _ := os.Hostname() // a name that says less is still a name
		o.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, 5*time.Second)
	o.RevokeTimeout = cmp.Or(o.RevokeTimeout, o.Heartbeat)
	o.MaxConnections = cmp.Or(o.MaxConnections, 1024)
	o.MaxPinned = cmp.Or(o.MaxPinned, math.MaxUint64/2)
	o.MaxPeerPinned = cmp.Or(o.MaxPeerPinned, math.MaxUint64/2)
	o.MaxPeerConnections = cmp.Or(o.MaxPeerConnections, (o.MaxConnections+1)/2)
	o.MaxExports = cmp.Or(o.MaxExports, 1<<16)
	o.MaxOps = cmp.Or(o.MaxOps, 4096)
	if o.Warn == nil {
		o.Warn = func(m string) { console.Write("pinwheel: vmmc: " + m + "\n") }
	}
	switch {
	case len(o.Name) > wire.MaxName:
		return fmt.Errorf("vmmc: a name of %d bytes: %d are allowed", len(o.Name), wire.MaxName)
	case (o.Certificate == nil) != (o.Authorities == nil):
		return fmt.Errorf("%w: a certificate needs authorities for those of peers, and the reverse", ErrIdentity)
	case o.Certificate != nil && o.Token != "":
		return fmt.Errorf("%w: either a certificate or a token", ErrIdentity)
	case o.Token != "" && len(o.Token) < identity.MinToken:
		return fmt.Errorf("%w: a token of %d bytes: it must have %d", ErrIdentity, len(o.Token), identity.MinToken)
	case o.Heartbeat < minHeartbeat || o.RevokeTimeout < 0 || o.MaxConnections < 0 || o.MaxPeerConnections < 0 ||
		o.MaxExports < 0 || o.MaxOps < 0:
		return fmt.Errorf("vmmc: heartbeat %v, revoke timeout %v, %d connections, %d of a peer, %d exports, %d messages",
			o.Heartbeat, o.RevokeTimeout, o.MaxConnections, o.MaxPeerConnections, o.MaxExports, o.MaxOps)
	}
	return nil
}
