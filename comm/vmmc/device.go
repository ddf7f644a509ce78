package vmmc

import (
	"context"
	"net/netip"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// device is an RDMA device, as a node uses it. The real one is rdmaDevice.
type device interface {
	// Provider registers what this node sends, in a domain that no peer reaches.
	Provider() verbs.Provider
	// Sender makes a queue pair in that domain. local is the address of this machine at which it reaches
	// the peer.
	Sender(local netip.Addr) (queuePair, error)
	// Receiver makes a protection domain for one peer, with a queue pair through which that peer can write.
	Receiver(local netip.Addr) (domain, error)
	// Check says why the device does not work any more; nil while it does.
	Check() error
	// Close fails while queue pairs are open.
	Close() error
}

// queuePair is a reliable connection of a device. All methods are safe for concurrent use.
type queuePair interface {
	Endpoint() []byte // for Ready of the peer
	Ready(peer []byte) error
	MaxMessage() uint64 // bytes
	// Write begins an RDMA write. No more than sendDepth may be outstanding. One without bytes needs no keys.
	Write(id uint64, src localBytes, addr uint64, rkey uint32) error
	// Poll returns completions, in the order of the writes, if there are any.
	Poll(dst []completion) (int, error)
	// Wait is Poll that waits for one, or fails if none comes any more.
	Wait(ctx context.Context, dst []completion) (int, error)
	// Interrupt has the Wait that waits, or else the next one, return without completions.
	Interrupt()
	// Fail ends the queue pair: what is outstanding completes with an error, unless the device has failed. It may have
	// arrived all the same.
	Fail()
	Close() error
}

// localBytes are registered memory of this process.
type localBytes struct {
	mem.Range
	lkey   uint32
	inline bool // a processor may read them when a write of them is posted, which is faster
}

// domain holds what one peer may write to. Close ends its queue pair and all registrations.
type domain interface {
	queuePair
	// Register lets the peer write to the bytes of r and to no others.
	Register(r mem.Range) (verbs.Region, error)
	Deregister(verbs.Region) error
}

// sendDepth is how many writes may be outstanding on a queue pair.
const sendDepth = 128

// completionBatch is how many completions are taken at a time.
const completionBatch = 16

// completion is the end of a write.
type completion struct {
	id  uint64
	err error
	// access says that the peer's device refused it: it is not, or no longer, registered there. flushed says that another
	// error, or Fail, ended the queue pair before.
	access, flushed bool
}
