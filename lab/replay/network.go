package replay

import (
	"fmt"
	"math/bits"

	"pinwheel/mem"
	"pinwheel/trace"
)

// Network is a LogGP model (Alexandrov, Ionescu, Schauser, Scheiman, SPAA
// 1995) with a rendezvous protocol for large messages. Adapters move data
// while processors compute; a sender's messages queue for its adapter, the
// network itself is never busy.
type Network struct {
	LatencyNs      float64 `json:"latency_ns"`        // L: first byte in flight
	OverheadNs     float64 `json:"overhead_ns"`       // o: processor time to send or receive a message
	GapNs          float64 `json:"gap_ns"`            // g: between two messages of one sender
	BytesPerNs     float64 `json:"bytes_per_ns"`      // 1/G: bandwidth
	EagerBytes     uint64  `json:"eager_bytes"`       // messages of this size and more wait for their receiver
	CopyBytesPerNs float64 `json:"copy_bytes_per_ns"` // memory bandwidth of a copy, for policy bounce

	// registerNsPerByte slows the wire down where chunks can't be registered
	// as fast as they could be sent (policy pipeline).
	registerNsPerByte float64
}

// DefaultNetwork is 100 Gb/s and 2 us.
func DefaultNetwork() Network {
	return Network{LatencyNs: 2000, OverheadNs: 300, GapNs: 100, BytesPerNs: 12.5, EagerBytes: 16 << 10, CopyBytesPerNs: 8}
}

// Bounds of the model: with them the times of any trace fit into an int64.
const (
	maxNetworkNs         = 1e9 // 1 s
	minBytesPerNs        = 1e-3 / 8
	maxBytesPerNs        = 1e5 / 8
	maxEagerBytes uint64 = mem.Unlimited
)

// check reports a model that is out of bounds, in the terms of people: Gb/s.
func (n *Network) check() error {
	for _, t := range []struct {
		name string
		ns   float64
	}{{"latency", n.LatencyNs}, {"overhead", n.OverheadNs}, {"gap", n.GapNs}} {
		if !(t.ns >= 0 && t.ns <= maxNetworkNs) { // not NaN either
			return fmt.Errorf("network %s must be from 0 to 1s, it is %g ns", t.name, t.ns)
		}
	}
	if !(n.BytesPerNs >= minBytesPerNs && n.BytesPerNs <= maxBytesPerNs) {
		return fmt.Errorf("network bandwidth must be from %g to %g Gb/s, it is %g", minBytesPerNs*8, maxBytesPerNs*8, n.BytesPerNs*8)
	}
	if !(n.CopyBytesPerNs >= minBytesPerNs && n.CopyBytesPerNs <= maxBytesPerNs) {
		return fmt.Errorf("bandwidth of a copy must be from %g to %g bytes/ns, it is %g", minBytesPerNs, maxBytesPerNs, n.CopyBytesPerNs)
	}
	if n.EagerBytes < 1 || n.EagerBytes > maxEagerBytes {
		return fmt.Errorf("eager must be at least 1 byte, and inf at most, it is %d", n.EagerBytes)
	}
	return nil
}

func (n *Network) wire(bytes uint64) float64 {
	return max(float64(bytes)/n.BytesPerNs, float64(bytes)*n.registerNsPerByte)
}

// transfer sets the completion times of a message whose two sides are both
// posted, and of an eager send as soon as it is posted. txFree is the time
// from which the sender's adapter is free; the new one is returned.
func (n *Network) transfer(m *message, txFree float64) float64 {
	if !m.rendezvous {
		if m.sendDone == unknown {
			start := max(float64(m.sendAt)+n.OverheadNs, txFree)
			m.arrival = int64(start + n.LatencyNs + n.wire(m.bytes))
			m.sendDone = m.sendAt + int64(n.OverheadNs)
			txFree = start + max(n.GapNs, n.wire(m.bytes))
		}
		if m.recvAt != unknown {
			m.recvDone = max(m.recvAt, m.arrival) + int64(n.OverheadNs)
		}
		return txFree
	}
	if m.sendAt == unknown || m.recvAt == unknown {
		return txFree
	}
	ready := max(float64(m.sendAt)+n.OverheadNs+n.LatencyNs, float64(m.recvAt)) // request to send meets the receive
	start := max(ready+n.OverheadNs+n.LatencyNs, txFree)                        // clear to send is back
	end := start + n.wire(m.bytes)
	m.sendDone = int64(end + n.OverheadNs)
	m.recvDone = int64(end + n.LatencyNs + n.OverheadNs)
	return start + max(n.GapNs, n.wire(m.bytes))
}

// oneSided is when an access to another rank's memory begins and ends on the
// wire, if it is posted at t and the adapter is free from txFree on; and from
// when on the adapter is free again.
func (n *Network) oneSided(op trace.Op, bytes uint64, t int64, txFree float64) (start, end, free float64) {
	start = max(float64(t)+n.OverheadNs, txFree)
	if op == trace.OpGet { // a question, and the other adapter sends
		return start, start + 2*n.LatencyNs + n.wire(bytes), start + n.GapNs
	}
	return start, start + n.LatencyNs + n.wire(bytes), start + max(n.GapNs, n.wire(bytes))
}

// collective is the time from the last arrival to the end of one round of a
// collective over n members; bytes is the most that any of them sends or
// receives in it.
func (n *Network) collective(op trace.Op, members int, bytes uint64, pairwise bool) int64 {
	if members < 2 {
		return 0
	}
	hop := n.LatencyNs + 2*n.OverheadNs
	depth := float64(bits.Len(uint(members - 1)))
	peers := float64(members - 1)
	switch {
	case op == trace.OpBarrier:
		return int64(depth * hop)
	case op == trace.OpAllgather:
		return int64(peers*(hop+n.GapNs) + n.wire(bytes))
	case op == trace.OpGather || op == trace.OpScatter: // binomial tree; the bytes are those of all
		return int64(depth*hop + n.wire(bytes))
	case op == trace.OpNeighbor: // with all neighbours at once
		return int64(hop + n.wire(bytes))
	case op == trace.OpAlltoall || op == trace.OpAlltoallv:
		if pairwise {
			peers = 1
		}
		return int64(hop + peers*n.GapNs + n.wire(bytes))
	default: // bcast, reduce, allreduce, scan, reduce-scatter: binomial tree, recursive doubling
		return int64(depth * (hop + n.wire(bytes)))
	}
}
