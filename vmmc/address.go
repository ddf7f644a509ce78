package vmmc

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"pinwheel/vmmc/internal/protocol"
)

// unknownUID is the UID of an Identity whose transport doesn't tell.
const unknownUID = -1

// endpoint is an address, taken apart, and what this node proves there.
type endpoint struct {
	network, address string
	tls              *tls.Config // nil for Unix sockets
	local            bool        // peers are this user, on this machine
}

// endpoint says how to reach an address, or how to be reached there.
func (n *Node) endpoint(a string) (e endpoint, err error) {
	network, address, _ := strings.Cut(a, ":")
	e = endpoint{network: network, address: address}
	switch {
	case network == "unix" && address != "":
		e.local = true
		return e, nil
	case network != "tcp":
		return e, fmt.Errorf("%w %q: write unix:PATH or tcp:HOST:PORT", ErrAddress, a)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return e, fmt.Errorf("%w %q: %w", ErrAddress, a, err)
	}
	switch {
	case n.opt.Certificate != nil:
		e.tls = certificates(&n.opt, host)
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
	e.tls, err = tokenTLS(token)
	return e, err
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
		var cred *unix.Ucred
		raw, err := c.SyscallConn()
		if err != nil {
			return who, err
		}
		// SO_PEERCRED: unix(7). The kernel noted who called connect or listen.
		err2 := raw.Control(func(fd uintptr) {
			cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
		if err != nil || err2 != nil {
			return who, fmt.Errorf("%w: SO_PEERCRED: %v, %v", ErrIdentity, err, err2)
		}
		if int64(cred.Uid) != who.UID {
			return who, fmt.Errorf("%w: process %d belongs to user %d", ErrIdentity, cred.Pid, cred.Uid)
		}
	case *tls.Conn:
		who.Name = certifiedName(c.ConnectionState())
	}
	return who, nil
}
