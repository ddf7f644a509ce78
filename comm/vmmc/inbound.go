package vmmc

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
)

// inbound is the connection of an importer to this node.
type inbound struct {
	*stream
	node   *Node
	who    protocol.Identity
	local  bool           // descriptors can be sent
	origin *broker.Origin // as the broker says; nil: it came without one
	link   protocol.Link  // 0 until it said hello
	// Node.mu protects these.
	sharing *sharing // of the grant that is being made
	rings   map[uint64]*ringReader
	granted map[uint64]uint32 // exports that do not share memory, by import

	// rdma is nil while RDMA is down. Only the reader sets it, with Node.mu held.
	rdma     *rdmaReceiver
	unusable bool // RDMA, and a line said so; only the reader uses it
}

var errPeerConnections = errors.New("too many connections of one peer")

// serve reads what an importer sends until its connection ends.
func (n *Node) serve(c net.Conn, e endpoint) {
	from, raw := c.RemoteAddr(), c
	c, who, err := n.authenticate(n.ctx, c, e, tls.Server)
	room := n.proved(raw, err != nil)
	switch {
	case err == nil:
	case closedByPeer(err), errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded), n.ctx.Err() != nil:
		return // who said nothing or went away
	default:
		n.warnOfPeer("a connection from %v was refused: %v", from, err)
		return
	}
	if !room {
		n.warnOfPeer("a connection from %v was refused: there are %d already", from, n.opt.MaxConnections)
		raw.Close()
		return
	}
	defer func() {
		n.mu.Lock()
		n.accepted--
		n.mu.Unlock()
	}()
	_, local := c.(*net.UnixConn)
	local = local && who.UID == int64(os.Geteuid()) // no memory for other users: they could leave the export's bounds
	in := &inbound{stream: newStream(c, &n.opt), node: n, who: who, local: local, rings: map[uint64]*ringReader{},
		granted: map[uint64]uint32{}}
	if made, ok := raw.(*broker.Conn); ok {
		in.origin = &made.Peer
	}
	stop := context.AfterFunc(n.ctx, in.bye)
	defer stop()
	written := make(chan struct{})
	go func() { in.write(nothing{}); close(written) }()
	in.read(in.hello, in.handle)
	<-written
	if err := in.reason(); errors.Is(err, protocol.ErrProtocol) || errors.Is(err, wire.ErrMalformed) {
		n.mu.Lock()
		n.total.Violations++
		n.mu.Unlock()
		n.warnOfPeer("the connection of %q at %v was ended: %v", in.who.Name, from, err)
	} else if errors.Is(err, errPeerConnections) {
		n.warnOfPeer("a connection of %q at %v was refused: %v", in.who.Name, from, err)
	}
	in.down()
}

// authenticate makes sure who the peer is. It closes c if it fails.
func (n *Node) authenticate(
	ctx context.Context, c net.Conn, e endpoint, side func(net.Conn, *tls.Config) *tls.Conn,
) (net.Conn, protocol.Identity, error) {
	made, introduced := c.(*broker.Conn)
	if introduced {
		c, e.tls = made.Conn, made.TLS
	}
	if e.tls != nil {
		t := side(c, e.tls)
		ctx, cancel := context.WithTimeout(ctx, min(n.opt.Heartbeat, handshakeTimeout))
		defer cancel()
		if err := t.HandshakeContext(ctx); err != nil {
			c.Close()
			return nil, protocol.Identity{}, err
		}
		c = t
	}
	if introduced {
		who := protocol.Identity{UID: unknownUID}
		if made.Peer.Node == "" {
			who.UID = int64(made.Peer.UID)
		}
		return c, who, nil
	}
	who, err := e.identify(c)
	if err != nil {
		c.Close()
	}
	return c, who, err
}

// qualify makes what a process of another user or node calls itself a name that nobody else can have.
func (in *inbound) qualify() error {
	o := in.origin
	stranger := o.Node != "" || int64(o.UID) != int64(os.Geteuid())
	if stranger && strings.ContainsAny(in.who.Name, "/@") {
		return fmt.Errorf("%w: %q has / or @", ErrIdentity, in.who.Name)
	}
	if int64(o.UID) != int64(os.Geteuid()) {
		in.who.Name = fmt.Sprintf("%d/%s", o.UID, in.who.Name)
	}
	if o.Node != "" {
		in.who.Name += "@" + o.Node
	}
	return nil
}

func (in *inbound) hello(f *wire.Frame) error {
	if in.who.Name == "" {
		in.who.Name = f.Name
	}
	if in.origin != nil {
		if err := in.qualify(); err != nil {
			return err
		}
	}
	n := in.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	of := 0
	for _, o := range n.inbound {
		if o.who == in.who {
			of++
		}
	}
	if of >= n.opt.MaxPeerConnections {
		return fmt.Errorf("%w: it has %d already", errPeerConnections, of)
	}
	n.lastLink++
	in.link = n.lastLink
	n.inbound[in.link] = in
	n.exporter.LinkUp(in.link, in.who)
	return nil
}

// handle takes a frame of the importer. The bytes of a message go from the connection into the export.
func (in *inbound) handle(f *wire.Frame) error {
	n := in.node
	switch f.Type {
	case wire.Endpoint, wire.Down:
		return in.introduce(f)
	case wire.Lease, wire.Yield:
		return in.lease(f)
	case wire.Release:
		if err := in.ungrant(f.Number); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch f.Type {
	case wire.Data:
		id, err := n.exporter.Receive(in.link, f)
		if err != nil {
			return err
		}
		e := n.exports[id]
		e.counts.ReceivedBytes += f.Bytes
		n.mu.Unlock()
		in.arrived++
		err = in.deliver(e.memory[f.Offset:][:f.Bytes])
		n.mu.Lock()
		return err
	case wire.Notify:
		in.arrived++
		return in.notification(f.Number, entry{offset: f.Offset, bytes: f.Bytes, tag: uint64(f.Tag)})
	case wire.Release:
		in.closeRing(f.Number)
	}
	_, err := n.exporter.Receive(in.link, f)
	return err
}

// deliver reads the bytes of a message into their place. A word appears there at once.
func (in *inbound) deliver(to []byte) error {
	w, aligned := word(to)
	if !aligned {
		_, err := io.ReadFull(in.in, to)
		return err
	}
	var b [wordBytes]byte
	_, err := io.ReadFull(in.in, b[:])
	if err == nil {
		w.Store(binary.NativeEndian.Uint64(b[:]))
	}
	return err
}

// notification takes a notification of an import. Node.mu is held.
func (in *inbound) notification(number uint64, e entry) error {
	f := wire.Frame{Type: wire.Notify, Number: number, Offset: e.offset, Bytes: e.bytes}
	id, err := in.node.exporter.Receive(in.link, &f)
	if err == nil {
		in.node.exports[id].counts.Notifications++
		in.node.exports[id].notified(protocol.Notification{
			From: protocol.Grant{Link: in.link, Number: number}, Peer: in.who.Name,
			Tag: uint16(e.tag), Offset: e.offset, Bytes: e.bytes, Count: 1,
		})
	}
	return err
}

// down takes back what the importer had. Nothing that it sent is on its way any more. But memory that it
// shares is its own to write as long as it lives: only its own end of the connection tells that it does not.
func (in *inbound) down() {
	in.closeRDMA()
	n := in.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if in.link == 0 {
		return
	}
	if in.local && !closedByPeer(in.reason()) {
		for id, e := range n.exports {
			if e.block != nil && slices.Contains(n.exporter.Holders(id), in.link) {
				e.unreturned = true
			}
		}
	}
	for number := range in.rings {
		in.closeRing(number)
	}
	n.exporter.LinkDown(in.link)
	delete(n.inbound, in.link)
}
