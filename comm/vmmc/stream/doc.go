// Package stream has byte streams over virtual memory-mapped communication: net.Conn and net.Listener for
// programs and libraries that know nothing else (net/http, crypto/tls, gRPC).
//
//	l, err := stream.Listen(node, 80, stream.Options{Peers: vmmc.Permissions{UIDs: []uint32{1000}}})
//	go http.Serve(l, handler)
//
//	// in another process, whose node listens, too
//	c, err := stream.Dial(ctx, node, "unix:/run/user/1000/server", 80, stream.Options{Peers: ...})
//
// Each end exports an inbox: a ring, and words that say how far it is filled and how far the other ring is
// read. A Write sends into the ring of the peer, then the word; a Read takes out of its own. So each end sends
// into the memory of the other, and the node of each must listen at an address that the other can reach. A
// peer that reads nothing stops the writer when its ring is full.
//
// Over shared memory, a call that waits looks for up to 50 us and then sleeps. As long as both ends look or are
// busy, reads and writes make no system call.
//
// A listener is an export as well, with the number of a service: whoever asks for a connection writes the
// request into one of its slots, by chance. Two that meet in one try again elsewhere.
//
// # Protection
//
// Options.Peers says who may connect, and who may be connected to. The inbox of a connection is only for the
// peer that asked for it. What it says there is checked: it can spoil its own connection, not others. But
// whoever may connect can overwrite requests of others, which delays them, and tells the listener at which
// address to connect to it.
//
// # Caveats
//
// A Write that waits for a network connection of the node, not for room in the ring, goes on beyond its
// deadline: until that connection makes progress, or for vmmc.Options.Heartbeat. Close returns at once. The
// memory is given back when the peer has got all that was written, or after Options.Timeout. The Close of the
// node waits for that. To the peers of connections that are still open it looks like a failure.
package stream
