package stream

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A listener's export consists of slots. A request is: its checksum, the number of the inbox that the
// listener shall import, the length of the address at which it finds it, and the address.
const (
	slots       = 256
	slotBytes   = 512
	requestHead = 4 + 4 + 2
	maxAddress  = slotBytes - requestHead
)

// firstInbox is the least number of an inbox: services have those below.
const firstInbox = 1 << 31

var errRequest = errors.New("stream: malformed request for a connection")

// request asks for a connection.
type request struct {
	inbox   uint32
	address string
}

func (r *request) encode() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4, slotBytes), r.inbox)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.address)))
	b = append(b, r.address...)
	binary.BigEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	return b
}

// decodeRequest reads a slot, in which another peer may be writing: b is a copy of it.
func decodeRequest(b []byte) (r request, err error) {
	if len(b) < requestHead {
		return r, errRequest
	}
	r.inbox = binary.BigEndian.Uint32(b[4:])
	n := int(binary.BigEndian.Uint16(b[8:]))
	if n > len(b)-requestHead || r.inbox < firstInbox {
		return r, errRequest
	}
	b = b[:requestHead+n]
	if crc32.ChecksumIEEE(b[4:]) != binary.BigEndian.Uint32(b) {
		return r, errRequest
	}
	r.address = string(b[requestHead:])
	return r, nil
}
