package lease

import (
	"errors"
	"fmt"
	"slices"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/mem"
)

// ErrTooLarge is the error of an export that is larger than what a peer may have registered, or all peers.
var ErrTooLarge = errors.New("the export is larger than what may be registered")

// LessorDriver carries out what a Lessor decides. Its methods are called in the middle of those of the Lessor:
// they must neither call it nor block.
type LessorDriver interface {
	// Grant registers the export for an importer, and tells it.
	Grant(protocol.Grant)
	// Recall asks an importer for its lease.
	Recall(protocol.Grant)
}

// Limits bound the bytes that are registered for importers, in whole pages. What two of them have of the same
// export counts twice, as it does for the device.
type Limits struct {
	Bytes     uint64 // of all
	PeerBytes uint64 // of one connection
}

// Lessor has the leases of all importers of a node.
type Lessor struct {
	driver LessorDriver
	limits Limits
	leases []*lease // the one that was granted longest ago first
	queue  []request
	bytes  uint64
	peers  map[protocol.Link]uint64 // bytes
}

type lease struct {
	request
	recalled bool
}

// request is a renewal that waits for room.
type request struct {
	grant protocol.Grant
	bytes uint64
}

// NewLessor returns a Lessor without leases.
func NewLessor(d LessorDriver, l Limits) *Lessor {
	return &Lessor{driver: d, limits: l, peers: map[protocol.Link]uint64{}}
}

// Check fails with ErrTooLarge if an export of so many bytes could never be registered.
func (r *Lessor) Check(bytes uint64) error {
	if most := min(r.limits.Bytes, r.limits.PeerBytes); wholePages(bytes) > most {
		return fmt.Errorf("%w: %s of %s", ErrTooLarge, mem.FormatBytes(bytes), mem.FormatBytes(most))
	}
	return nil
}

func wholePages(bytes uint64) uint64 { return (bytes + mem.PageSize - 1) &^ (mem.PageSize - 1) }

// RegisteredBytes is what all importers have.
func (r *Lessor) RegisteredBytes() uint64 { return r.bytes }

// Renew takes an importer's request. Its export has passed Check.
func (r *Lessor) Renew(g protocol.Grant, bytes uint64) error {
	waits := slices.ContainsFunc(r.queue, func(q request) bool { return q.grant == g })
	if waits || r.find(g) >= 0 {
		return fmt.Errorf("%w: import %d asks for a lease that it has or waits for", protocol.ErrProtocol, g.Number)
	}
	r.queue = append(r.queue, request{g, wholePages(bytes)})
	r.serve()
	return nil
}

// Yielded takes a lease back, or a request. The driver deregisters first.
func (r *Lessor) Yielded(g protocol.Grant) error {
	if at := r.find(g); at >= 0 {
		r.end(at)
		r.serve()
		return nil
	}
	before := len(r.queue)
	r.queue = slices.DeleteFunc(r.queue, func(q request) bool { return q.grant == g })
	if len(r.queue) == before {
		return fmt.Errorf("%w: import %d yields a lease that it has not", protocol.ErrProtocol, g.Number)
	}
	r.serve()
	return nil
}

// Drop is Yielded for what may not be there.
func (r *Lessor) Drop(g protocol.Grant) {
	_ = r.Yielded(g) // its error says that it is not there
}

// LinkDown takes back what the importers at a connection had. The driver deregisters first.
func (r *Lessor) LinkDown(l protocol.Link) {
	r.queue = slices.DeleteFunc(r.queue, func(q request) bool { return q.grant.Link == l })
	for at := len(r.leases) - 1; at >= 0; at-- {
		if r.leases[at].grant.Link == l {
			r.end(at)
		}
	}
	r.serve()
}

func (r *Lessor) find(g protocol.Grant) int {
	return slices.IndexFunc(r.leases, func(l *lease) bool { return l.grant == g })
}

func (r *Lessor) end(at int) {
	l := r.leases[at]
	r.leases = slices.Delete(r.leases, at, at+1)
	r.bytes -= l.bytes
	if r.peers[l.grant.Link] -= l.bytes; r.peers[l.grant.Link] == 0 {
		delete(r.peers, l.grant.Link)
	}
}

// serve grants requests in their order, and recalls leases for those that find no room. One that waits for room
// of its own peer lets others pass. One that waits for room of all does not: it would wait for ever.
func (r *Lessor) serve() {
	blocked := false
	r.queue = slices.DeleteFunc(r.queue, func(q request) bool {
		mine := func(l *lease) bool { return l.grant.Link == q.grant.Link }
		switch {
		case blocked:
			return false
		case r.peers[q.grant.Link]+q.bytes > r.limits.PeerBytes:
			r.recall(r.peers[q.grant.Link]+q.bytes-r.limits.PeerBytes, mine)
			return false
		case r.bytes+q.bytes > r.limits.Bytes:
			r.recall(r.bytes+q.bytes-r.limits.Bytes, func(*lease) bool { return true })
			blocked = true
			return false
		}
		r.leases = append(r.leases, &lease{request: q})
		r.bytes += q.bytes
		r.peers[q.grant.Link] += q.bytes
		r.driver.Grant(q.grant)
		return true
	})
}

// recall asks for the leases that were granted longest ago, until so many bytes are on their way back.
func (r *Lessor) recall(bytes uint64, among func(*lease) bool) {
	for _, recalled := range []bool{true, false} { // what was recalled before counts first
		for _, l := range r.leases {
			if bytes == 0 {
				return
			}
			if l.recalled != recalled || !among(l) {
				continue
			}
			bytes -= min(bytes, l.bytes)
			if !l.recalled {
				l.recalled = true
				r.driver.Recall(l.grant)
			}
		}
	}
}
