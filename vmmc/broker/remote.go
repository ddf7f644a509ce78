package broker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"pinwheel/vmmc/internal/identity"
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

// A ticket is good for one connection to an exporter, through the port of its node's broker. The id says which one.
// It is no secret, as it goes ahead of TLS; the key of both ends is.
type ticket struct {
	to      *exporter
	from    Origin
	secret  string
	expires time.Time
}

const (
	idBytes    = 16
	ticketLife = 10 * time.Second
	maxTickets = 4096
	maxRemotes = 1024 // connections of other nodes at a time
)

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
		return fmt.Errorf("the broker of %s: %s", m.Host, answer.Reason)
	}
	return c.send(ctx, &message{Kind: connected, Host: m.Host, Ticket: answer.Ticket, Secret: answer.Secret})
}

// serveRemote serves other nodes until the listener is closed.
func (b *broker) serveRemote(l net.Listener) {
	_ = b.accept(l, func(c net.Conn) {
		b.mu.Lock()
		full := b.remotes >= maxRemotes
		if !full {
			b.remotes++
		}
		b.mu.Unlock()
		if full {
			c.Close()
			return
		}
		b.remote(c)
		b.mu.Lock()
		b.remotes--
		b.mu.Unlock()
	})
}

// remote serves a connection of another node: that of a broker, or one with a ticket.
func (b *broker) remote(c net.Conn) {
	defer c.Close()
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
		b.redeem(c.(*net.TCPConn), hex.EncodeToString(id))
		return
	}
	config, err := b.opt.Remote.config("")
	if err != nil {
		b.opt.Warn(err.Error())
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
	if m.From.Node == "" {
		return nil, errors.New("a broker must say the name of its node")
	}
	if err := t.SetDeadline(time.Time{}); err != nil {
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
	if err != nil {
		return nil, err
	}
	if !e.admits(*m.From) {
		return nil, fmt.Errorf("%q of user %d is not for user %d of node %q", m.Name, m.UID, m.From.UID, m.From.Node)
	}
	id, secret := make([]byte, idBytes), make([]byte, identity.MinToken)
	rand.Read(id)
	rand.Read(secret)
	k := ticket{to: e, from: *m.From, secret: hex.EncodeToString(secret), expires: time.Now().Add(ticketLife)}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, old := range b.tickets {
		if time.Now().After(old.expires) {
			delete(b.tickets, id)
		}
	}
	if len(b.tickets) >= maxTickets {
		return nil, errors.New("too many connections are being made")
	}
	b.tickets[hex.EncodeToString(id)] = k
	return &message{Kind: connected, Ticket: hex.EncodeToString(id), Secret: k.secret}, nil
}

// redeem gives a connection to the exporter that its ticket is for.
func (b *broker) redeem(c *net.TCPConn, id string) {
	b.mu.Lock()
	k, ok := b.tickets[id]
	delete(b.tickets, id)
	b.mu.Unlock()
	if !ok || time.Now().After(k.expires) {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// If it fails, the importer finds the connection closed, and asks again.
		_ = k.to.send(b.ctx, &message{Kind: connect, From: &k.from, Secret: k.secret}, int(fd))
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
