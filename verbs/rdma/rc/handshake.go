package rc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// endpoint is what a peer must know of a queue pair, as sent over the socket
// in network byte order.
type endpoint struct {
	Magic [8]byte // name and version of this protocol
	QP    uint32
	PSN   uint32 // 24 bits
	LID   uint16 // InfiniBand only
	MTU   uint8  // enum ibv_mtu
	Reads uint8  // RDMA reads that it serves at a time
	GID   [16]byte
}

var magic = [8]byte{'P', 'W', 'H', 'L', 'R', 'C', '0', '1'}

// EndpointBytes is the length of an encoded Endpoint.
const EndpointBytes = 36

func (e endpoint) encode() []byte {
	e.Magic = magic
	b, err := binary.Append(nil, binary.BigEndian, e)
	if err != nil {
		panic(err) // it has a fixed size
	}
	return b
}

func decodeEndpoint(b []byte) (e endpoint, err error) {
	if len(b) != EndpointBytes {
		return e, fmt.Errorf("an endpoint of %d bytes, not %d", len(b), EndpointBytes)
	}
	if _, err := binary.Decode(b, binary.BigEndian, &e); err != nil {
		return e, err
	}
	if e.Magic != magic {
		return e, fmt.Errorf("peer speaks %q, not %q", e.Magic, magic)
	}
	if e.MTU == 0 || e.MTU > 5 {
		return e, fmt.Errorf("peer has an impossible MTU, %d", e.MTU)
	}
	return e, nil
}

// swapEndpoints tells ours and learns the peer's.
func swapEndpoints(nc net.Conn, ours endpoint) (theirs endpoint, err error) {
	in := make([]byte, EndpointBytes)
	if err := swap(nc, ours.encode(), in); err != nil {
		return theirs, err
	}
	return decodeEndpoint(in)
}

// barrier returns when both sides have called it.
func barrier(nc net.Conn) error {
	return swap(nc, []byte{1}, make([]byte, 1))
}

// swap sends out and fills in, at the same time: both sides send first, and
// an unbuffered pipe would block them.
func swap(nc net.Conn, out, in []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := nc.Write(out)
		sent <- err
	}()
	_, err := io.ReadFull(nc, in)
	if err != nil {
		_ = nc.Close() // frees the writer; the connection is of no use any more
	}
	return errors.Join(err, <-sent)
}
