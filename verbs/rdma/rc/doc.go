// Package rc moves bytes between two processes over a reliable-connected
// RDMA queue pair: RDMA write and read, send and receive.
//
// It is as small as a transport can be, to be read as an example of how a Go
// transport uses registrations:
//
//	p, err := rdma.Open(rdma.Options{})         // device and protection domain
//	c, err := rc.Connect(ctx, tcpConn, p, rc.Options{})
//	g, err := p.Register(r, verbs.AccessLocalWrite) // or a registration cache's Acquire
//	err = c.Write(1, rc.Local{Range: r, LKey: g.LKey}, remote)
//	n, err := c.Wait(ctx, completions[:])       // or c.Poll, without waiting
//
// # Connection
//
// Connect is called by both sides, each with its end of a connected socket
// (TCP, Unix, net.Pipe). The ends tell each other where their queue pairs are,
// bring them up, and keep the socket: when the peer closes it or dies, what is
// posted completes with StatusFlushed at once, instead of after the transport's
// retries.
//
// # Ownership
//
// A posted buffer belongs to the device until its request has completed, unless
// it is inline: it must stay registered and mapped. A Conn owns its socket. It must be closed
// before its provider.
//
// # Caveats
//
// Every request has its own completion, and at most Options.Depth sends and as many receives may be outstanding.
// Receives must be posted before the peer sends; it retries for ever if they are not. Remote keys are whatever the peer
// sent: a peer that can reach a region can write to it as long as it is registered.
package rc
