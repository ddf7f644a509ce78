package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode"

	"pinwheel/comm/vmmc/internal/identity"
)

// Remote is how a broker talks to those of other nodes. Brokers believe each other which user a process belongs to.
type Remote struct {
	// Listener is a TCP listener for other brokers, and for the connections that they asked for. nil: this one only
	// asks. Serve closes it.
	Listener net.Listener
	// Name is that of this node, if no certificate says it.
	Name string
	// Certificate identifies this node to those whose Authorities issued it. Or else Token does, to those who know it:
	// see vmmc.Options.
	Certificate *tls.Certificate
	Authorities *x509.CertPool
	Token       string
}

// config is that of a connection to host, or at the listener.
func (r *Remote) config(host string) (*tls.Config, error) {
	switch {
	case r.Certificate != nil && r.Authorities != nil:
		return identity.Certificates(r.Certificate, r.Authorities, host), nil
	case len(r.Token) >= identity.MinToken && r.Name != "":
		return identity.Token(r.Token)
	}
	return nil, fmt.Errorf("%w: a broker needs a certificate and authorities, or a name and a token of %d bytes",
		identity.Err, identity.MinToken)
}

// maxStrangers is how many connections of other nodes may be busy saying who they are. With one more, one of them has
// to go.
const maxStrangers = 256

// preamble begins a connection with a ticket. TLS begins with another byte.
var preamble = []byte("PWT1")

// connectRemote asks the broker of another node for a ticket, and gives it to the client.
func (b *broker) connectRemote(ctx context.Context, c *conn, uid uint32, m *message) error {
	r := b.opt.Remote
	if r == nil {
		return errors.New("this broker knows no other nodes: it has neither a certificate nor a token")
	}
	host, _, err := net.SplitHostPort(m.Host)
	if err != nil {
		return err
	}
	config, err := r.config(host)
	if err != nil {
		return err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: config}
	plain, err := d.DialContext(ctx, "tcp", m.Host)
	if err != nil {
		return err
	}
	t := plain.(*tls.Conn)
	defer t.NetConn().Close()
	stop := context.AfterFunc(ctx, func() { t.NetConn().Close() })
	defer stop()
	answer := message{}
	err = json.NewEncoder(t).Encode(&message{Kind: dial, Name: m.Name, UID: m.UID, From: &Origin{uid, r.Name}})
	if err == nil {
		err = json.NewDecoder(io.LimitReader(t, maxMessage)).Decode(&answer)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the broker of %s: %w", m.Host, err)
	case answer.Kind != connected:
		return fmt.Errorf("the broker of %s: %q", m.Host, answer.Reason)
	}
	return c.send(ctx, &message{Kind: connected, Host: m.Host, Ticket: answer.Ticket, Secret: answer.Secret})
}

// remote serves a connection of another node: that of a broker, or one with a ticket.
func (b *broker) remote(c net.Conn, config *tls.Config) {
	defer c.Close()
	b.strangers.Enter(c, maxStrangers)
	defer b.strangers.Leave(c)
	stop := context.AfterFunc(b.ctx, func() { c.Close() })
	defer stop()
	if c.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	head := make([]byte, len(preamble)+idBytes)
	if _, err := io.ReadFull(c, head); err != nil {
		return
	}
	if id, ok := bytes.CutPrefix(head, preamble); ok {
		b.strangers.Leave(c)
		b.redeem(c.(*net.TCPConn), hex.EncodeToString(id))
		return
	}
	t := tls.Server(&unread{c, head}, config)
	if t.Handshake() != nil {
		return
	}
	var m message
	if json.NewDecoder(io.LimitReader(t, maxMessage)).Decode(&m) != nil || m.Kind != dial || m.From == nil {
		return
	}
	b.strangers.Leave(c)
	if name := identity.CertifiedName(t.ConnectionState()); name != "" {
		m.From.Node = name
	}
	answer, err := b.admit(t, &m)
	if err != nil {
		answer = refusal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	_ = json.NewEncoder(t).Encode(answer)
}

// admit waits for an exporter as long as the other broker does, and makes a ticket.
func (b *broker) admit(t *tls.Conn, m *message) (*message, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if m.From.Node == "" || strings.ContainsFunc(m.From.Node, unprintable) {
		return nil, errors.New("a broker must say the name of its node, which can be printed")
	}
	if err := t.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if err := b.guests.enter(*m.From); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var one [1]byte
		_, _ = t.Read(one[:]) // it says nothing more
		cancel()
	}()
	e, err := b.find(ctx, key{m.UID, m.Name})
	_ = t.SetReadDeadline(time.Unix(1, 0)) // ends the Read
	cancel()
	<-gone
	if err == nil && !e.admits(*m.From) {
		err = fmt.Errorf("%q of user %d is not for user %d of node %q", m.Name, m.UID, m.From.UID, m.From.Node)
	}
	if err != nil {
		b.guests.leave(*m.From)
		return nil, err
	}
	id, secret := b.guests.ticket(e, *m.From)
	return &message{Kind: connected, Ticket: id, Secret: secret}, nil
}

// redeem gives a connection to the exporter that its ticket is for.
func (b *broker) redeem(c *net.TCPConn, id string) {
	k, ok := b.guests.redeem(id)
	if !ok {
		return
	}
	defer b.guests.leave(k.from)
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_ = raw.Control(func(fd uintptr) {
		// If it fails, the importer finds the connection closed, and asks again.
		_ = k.to.send(ctx, &message{Kind: connect, From: &k.from, Secret: k.secret}, int(fd))
	})
}

// unread is a connection of which something has been read.
type unread struct {
	net.Conn
	head []byte
}

func (u *unread) Read(b []byte) (int, error) {
	if len(u.head) == 0 {
		return u.Conn.Read(b)
	}
	n := copy(b, u.head)
	u.head = u.head[n:]
	return n, nil
}

// redeemed makes a connection with a ticket.
func redeemed(ctx context.Context, m *message) (*Conn, error) {
	id, err := hex.DecodeString(m.Ticket)
	if err != nil || len(id) != idBytes {
		return nil, fmt.Errorf("%w: ticket %q", errMessage, m.Ticket)
	}
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, "tcp", m.Host)
	if err != nil {
		return nil, err
	}
	config, err := identity.Token(m.Secret)
	if err == nil {
		_, err = c.Write(append(preamble[:len(preamble):len(preamble)], id...))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &Conn{Conn: c, Peer: Origin{Node: m.Host}, TLS: config}, nil
}
