package rc

import (
	"bytes"
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

// swapEndpoints tells ours and learns the peer's.
func swapEndpoints(nc net.Conn, ours endpoint) (theirs endpoint, err error) {
	var out, in bytes.Buffer
	ours.Magic = magic
	if err := binary.Write(&out, binary.BigEndian, ours); err != nil {
		return theirs, err
	}
	in.Write(make([]byte, out.Len()))
	if err := swap(nc, out.Bytes(), in.Bytes()); err != nil {
		return theirs, err
	}
	if err := binary.Read(&in, binary.BigEndian, &theirs); err != nil {
		return theirs, err
	}
	if theirs.Magic != magic {
		return theirs, fmt.Errorf("peer speaks %q, not %q", theirs.Magic, magic)
	}
	if theirs.MTU == 0 || theirs.MTU > 5 {
		return theirs, fmt.Errorf("peer has an impossible MTU, %d", theirs.MTU)
	}
	return theirs, nil
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
