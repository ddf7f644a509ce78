package vmmc

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"pinwheel/vmmc/internal/wire"
)

// Options configure a Node. The zero value makes one that exports to nobody, and that can import on this
// machine.
type Options struct {
	// Name is what others know this node by, if no certificate says it. Empty: host name and process.
	Name string
	// Listen are the addresses at which importers find this node: unix:PATH or tcp:HOST:PORT.
	Listen []string

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

	// Heartbeat is the silence after which a peer is gone. 0 stands for 5 seconds.
	Heartbeat time.Duration
	// RevokeTimeout is how long Unexport waits for importers before it ends their connections. 0 stands for
	// Heartbeat.
	RevokeTimeout time.Duration
	// MaxConnections is how many importers' connections this node accepts at a time. 0 stands for 1024. Those
	// who have not proved yet who they are don't count: there are 64 of them at most, each for 3 seconds.
	MaxConnections int
	// Warn gets a line whenever something fails that no caller hears of: at most 20 a minute about what this
	// process does, and as many about what others do. nil: standard error.
	Warn func(message string)
}

// MaxOps is how many messages of one Node to one exporter may wait at a time.
const MaxOps = 4096

// minToken is the shortest Token, in bytes. A peer that has not proved anything yet sees a public key that
// is derived from it, and could try out short ones.
const minToken = 32

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	if o.Name == "" {
		host, _ := os.Hostname() // a name that says less is still a name
		o.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	o.Heartbeat = cmp.Or(o.Heartbeat, 5*time.Second)
	o.RevokeTimeout = cmp.Or(o.RevokeTimeout, o.Heartbeat)
	o.MaxConnections = cmp.Or(o.MaxConnections, 1024)
	if o.Warn == nil {
		o.Warn = func(m string) { fmt.Fprintln(os.Stderr, "pinwheel: vmmc: "+m) }
	}
	switch {
	case len(o.Name) > wire.MaxName:
		return fmt.Errorf("vmmc: a name of %d bytes: %d are allowed", len(o.Name), wire.MaxName)
	case (o.Certificate == nil) != (o.Authorities == nil):
		return fmt.Errorf("%w: a certificate needs authorities for those of peers, and the reverse", ErrIdentity)
	case o.Certificate != nil && o.Token != "":
		return fmt.Errorf("%w: either a certificate or a token", ErrIdentity)
	case o.Token != "" && len(o.Token) < minToken:
		return fmt.Errorf("%w: a token of %d bytes: it must have %d", ErrIdentity, len(o.Token), minToken)
	case o.Heartbeat < 10*time.Millisecond || o.RevokeTimeout < 0 || o.MaxConnections < 0:
		return fmt.Errorf("vmmc: heartbeat %v, revoke timeout %v, %d connections",
			o.Heartbeat, o.RevokeTimeout, o.MaxConnections)
	}
	return nil
}
