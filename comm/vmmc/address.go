package vmmc

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/internal/unixsocket"
)

// unknownUID is the UID of an Identity whose transport doesn't tell.
const unknownUID = -1

// endpoint is an address, taken apart, and what this node proves there.
type endpoint struct {
	network, address string      // as package net takes them; node: through the broker
	tls              *tls.Config // nil on this machine
	local            bool        // peers are this user, on this machine
	broker           string      // socket of the broker
	target           broker.Target
}

// endpoint says how to reach an address, or how to be reached there.
func (n *Node) endpoint(a string) (e endpoint, err error) {
	network, address, _ := strings.Cut(a, ":")
	e = endpoint{network: network, address: address}
	switch {
	case network == "unix" && address != "":
		if err := unixsocket.CheckPath(address); err != nil {
			return e, fmt.Errorf("%w: %w", ErrAddress, err)
		}
		e.local = true
		return e, nil
	case network == "node":
		return n.atBroker(a, address)
	case network != "tcp":
		return e, fmt.Errorf("%w %q: write unix:PATH, node:NAME or tcp:HOST:PORT", ErrAddress, a)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return e, fmt.Errorf("%w %q: %w", ErrAddress, a, err)
	}
	switch {
	case n.opt.Certificate != nil:
		e.tls = identity.Certificates(n.opt.Certificate, n.opt.Authorities, host)
		return e, nil
	case n.opt.Token == "" && !loopback(host):
		return e, fmt.Errorf("%w %q: beyond this machine a certificate or a token is needed", ErrAddress, a)
	}
	token := n.opt.Token
	if token == "" {
		e.local = true
		if token, err = fileToken(n.opt.TokenFile); err != nil {
			return e, fmt.Errorf("vmmc: token of this user for %s: %w", a, err)
		}
	}
	e.tls, err = identity.Token(token)
	return e, err
}

// atBroker is the endpoint of node:NAME, which is a name of this user, or of node:UID/NAME, or of either with the
// address of another node's broker: node:NAME@HOST:PORT.
func (n *Node) atBroker(a, name string) (e endpoint, err error) {
	e = endpoint{network: "node", broker: n.opt.Broker, target: broker.Target{UID: uint32(os.Geteuid())}}
	name, host, elsewhere := strings.Cut(name, "@")
	if elsewhere {
		if _, _, err := net.SplitHostPort(host); err != nil {
			return e, fmt.Errorf("%w %q: %w", ErrAddress, a, err)
		}
		e.target.Host = host
	}
	if user, rest, other := strings.Cut(name, "/"); other {
		uid, err := strconv.ParseUint(user, 10, 32)
		if err != nil {
			return e, fmt.Errorf("%w %q: write node:NAME or node:UID/NAME", ErrAddress, a)
		}
		e.target.UID, name = uint32(uid), rest
	}
	e.target.Name = name
	if name == "" || len(name) > broker.MaxName {
		return e, fmt.Errorf("%w %q: a name of 1 to %d bytes is needed", ErrAddress, a, broker.MaxName)
	}
	if e.broker == "" {
		e.broker = broker.Socket()
	}
	return e, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// identify proves who is at the other end of a connection, in as much as its transport can. The name is
// empty if the peer may choose it.
func (e *endpoint) identify(c net.Conn) (who protocol.Identity, err error) {
	who.UID = unknownUID
	if e.local {
		who.UID = int64(os.Geteuid())
	}
	switch c := c.(type) {
	case *net.UnixConn:
		cred, err := unixsocket.Peer(c)
		if err != nil {
			return who, fmt.Errorf("%w: %w", ErrIdentity, err)
		}
		if int64(cred.Uid) != who.UID {
			return who, fmt.Errorf("%w: process %d belongs to user %d", ErrIdentity, cred.Pid, cred.Uid)
		}
	case *tls.Conn:
		who.Name = identity.CertifiedName(c.ConnectionState())
	}
	return who, nil
}
