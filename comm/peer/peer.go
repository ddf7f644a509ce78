// Package peer serves commands that talk over package vmmc to a command of the same kind. It says who an end is, whom
// it talks to, and where the other end reaches it.
package peer

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/unixsocket"
)

// End is one of the two ends.
type End struct {
	// Name is the name of this end. Peers are the names of those that it talks to. Without an identity all of
	// this user on this machine are.
	Name  string
	Peers []string
	// TokenFile has a secret that both ends know.
	TokenFile string
	// Certificate, Key and Authorities are files (PEM).
	Certificate, Key, Authorities string

	// From is where the end that this one connects to reaches it: with certificates, by a name in that of this end.
	// Port 0 stands for the one that the kernel chooses. Empty, on this machine: this end chooses.
	From string
	// Bind is where this end listens for that, if it can't listen at From. Empty: From.
	Bind string
}

func (e *End) certified() bool { return e.Certificate != "" || e.Key != "" || e.Authorities != "" }

// CheckIdentity finds an identity that is not whole, or that is two.
func (e *End) CheckIdentity() error {
	switch {
	case e.certified() && e.TokenFile != "":
		return errors.New("either a token or a certificate")
	case e.certified() && (e.Certificate == "" || e.Key == "" || e.Authorities == ""):
		return errors.New("a certificate, its key and the authorities of peers go together")
	}
	return nil
}

// Check finds options that contradict each other. target is the address to which this end connects, empty for one that
// is connected to.
func (e *End) Check(target string) error {
	var badTarget error
	if target != "" {
		badTarget = CheckAddress(target)
	}
	err := e.CheckIdentity()
	switch {
	case err != nil:
		return err
	case e.certified() && len(e.Peers) == 0:
		return errors.New("with a certificate, the names of peers are needed")
	case e.Bind != "" && (target == "" || e.From == ""):
		return errors.New("where to listen (--bind) needs the address at which the other end reaches this one (--from)")
	case badTarget != nil:
		return badTarget
	case target != "" && e.From != "":
		err = checkFrom(e.From, target)
	case strings.HasPrefix(target, "tcp:"):
		_, err = returnTo(target)
	}
	if e.Bind != "" && err == nil {
		err = checkBind(e.Bind, e.From)
	}
	return err
}

// Identity returns who this end is, and whom it talks to. role is what all ends of the kind are called by default.
func (e *End) Identity(role string) (n vmmc.Options, p vmmc.Permissions, err error) {
	n = vmmc.Options{Name: cmp.Or(e.Name, role)}
	p.Peers = e.Peers
	switch {
	case e.certified():
		n.Certificate, n.Authorities, err = vmmc.ReadCertificate(e.Certificate, e.Key, e.Authorities)
	case e.TokenFile != "":
		n.Token, err = vmmc.ReadToken(e.TokenFile)
		if len(p.Peers) == 0 {
			p.Peers = []string{role}
		}
	case len(p.Peers) == 0:
		p.UIDs = []uint32{uint32(os.Geteuid())}
	}
	return n, p, err
}

// Callback is where the other end reaches one that has connected to it.
type Callback struct {
	Listen string     // for vmmc.Options
	from   string     // as the other end knows it, if the port is not 0
	dir    *socketDir // of a socket that was chosen; may be nil
}

// Callback returns where the end at target reaches this one. The caller closes it after its node. role is part of what
// this end chooses.
func (e *End) Callback(target, role string) (c *Callback, err error) {
	c = &Callback{Listen: cmp.Or(e.Bind, e.From)}
	network, _, _ := strings.Cut(target, ":")
	switch {
	case c.Listen != "":
	case network == "unix":
		if c.dir, err = newSocketDir(role); err == nil {
			c.Listen = "unix:" + c.dir.socket()
		}
	case network == "node":
		c.Listen = fmt.Sprintf("node:%s-%d", role, os.Getpid())
	default:
		c.Listen, err = returnTo(target)
	}
	c.from = cmp.Or(e.From, c.Listen)
	return c, err
}

// Address returns the address to tell the other end. n listens already.
func (c *Callback) Address(n *vmmc.Node) string {
	if name, zero := strings.CutSuffix(c.from, ":0"); zero && strings.HasPrefix(c.from, "tcp:") {
		listens := n.Addresses()[0]
		return name + listens[strings.LastIndexByte(listens, ':'):]
	}
	return c.from
}

// Close removes what was made to listen.
func (c *Callback) Close() error {
	if c.dir == nil {
		return nil
	}
	return c.dir.close()
}

// checkFrom finds addresses at which the end at target can't reach this one.
func checkFrom(from, target string) error {
	if err := CheckAddress(from); err != nil {
		return err
	}
	network, address, _ := strings.Cut(from, ":")
	if want, _, _ := strings.Cut(target, ":"); network != want {
		return fmt.Errorf("%s can't be reached from %s", from, target)
	}
	if network != "tcp" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		err = fmt.Errorf("%s is no address of this machine: give that with --from, and this with --bind", from)
	}
	return err
}

// checkBind finds addresses at which nobody who asks for the other one arrives.
func checkBind(bind, from string) error {
	err := CheckAddress(bind)
	if network, _, _ := strings.Cut(bind, ":"); err == nil && !strings.HasPrefix(from, network+":") {
		err = fmt.Errorf("%s can't be what others reach as %s", bind, from)
	}
	return err
}

// returnTo returns an address of this machine, if the target is there.
func returnTo(target string) (string, error) {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(target, "tcp:"))
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("%s must reach this end: give its address here with --from tcp:HOST:PORT", target)
	}
	return "tcp:" + net.JoinHostPort(host, "0"), nil
}

// CheckAddress finds what is no address of vmmc.
func CheckAddress(a string) error {
	network, address, _ := strings.Cut(a, ":")
	var port string
	var err error
	if network == "tcp" {
		_, port, err = net.SplitHostPort(address)
	}
	if err != nil || address == "" || network != "tcp" && network != "unix" && network != "node" {
		return fmt.Errorf("%q: write tcp:HOST:PORT, unix:PATH or node:NAME", a)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q: %q is no port", a, port)
	}
	if network == "unix" {
		return unixsocket.CheckPath(address)
	}
	return nil
}
