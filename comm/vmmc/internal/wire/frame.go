package wire

import "errors"

// Type says what a frame asks for or tells. The zero Type is invalid.
type Type uint8

const (
	Hello    Type = iota + 1 // the first one: Version, Name, Count (ms of silence that its sender bears)
	Import                   // to the exporter: may Number import Export?
	Release                  // to the exporter: Number is not wanted any more, or everything sent for it was sent
	Data                     // to the exporter: Bytes bytes for Number at Offset follow
	Notify                   // to the exporter: notify of Bytes bytes for Number at Offset, with Tag
	Grant                    // to the importer: Number has Bytes bytes and may notify Count times. See Shared
	Deny                     // to the importer: Number is refused, for the reason Code
	Revoke                   // to the importer: send nothing more for Number, then Release it
	Credit                   // to the importer: Number may notify Count times more, and as often as its ring says
	Ack                      // to the importer: the first Count Data and Notify frames have arrived
	Ping                     // I am here
	Bye                      // the last one: this node closes
	Endpoint                 // attempt Number to use RDMA: Name says where the queue pair is. The answer is another
	Region                   // to the importer: Number is registered from address Offset, with the remote key Key
	Lease                    // to the exporter: register Number for RDMA, and answer with Region
	Recall                   // to the importer: Yield Number as soon as nothing is on its way to it
	Yield                    // to the exporter: nothing is on its way to Number by RDMA, deregister it
	Down                     // attempt Number is over, for the reason Code. The answer: nothing of it lands any more
	NoLease                  // to the importer: Number can't be registered at present. Another answer to Lease
	types
)

// Codes of Deny.
const (
	NotPermitted uint8 = iota + 1
	TooManyImporters
	TooManyWaiting
)

// Codes of Down.
const (
	NoRDMA     uint8 = iota + 1 // this node has none, and will have none
	RDMAFailed                  // it may work again
)

const (
	// Version is that of the protocol. Nodes of different versions don't talk.
	Version = 3
	// MaxName is the most bytes of a node's name.
	MaxName = 255
	// MaxChunk is the most bytes that follow one Data frame: others need not wait long behind it.
	MaxChunk = 64 << 10 // 64 KiB
	// DataHeader is the bytes of a Data frame.
	DataHeader = headerBytes + 3*8
)

// Frame is one frame. Only the fields that its Type names are coded.
type Frame struct {
	Type    Type
	Version uint16
	Shared  bool // descriptors of the memory, of a ring and of its bell come along; it begins at Offset
	Code    uint8
	Tag     uint16
	Export  uint32 // the identifier that the exporter chose
	Number  uint64 // of an import; the importer counts them from 1 on each connection
	Offset  uint64 // in bytes
	Bytes   uint64
	Count   uint64
	Key     uint32 // of a memory region, for RDMA
	Name    string
}

// ErrMalformed is the error of bytes that are no frame.
var ErrMalformed = errors.New("malformed frame")

type field uint8

const (
	version field = iota
	shared
	code
	tag
	export
	number
	offset
	size
	count
	key
	name // the rest of the body
)

// layouts are the fields of each type, in their order.
var layouts = [types][]field{
	Hello:   {version, count, name},
	Import:  {number, export},
	Release: {number},
	Data:    {number, offset, size},
	Notify:  {number, offset, size, tag},
	Grant:   {number, offset, size, count, shared},
	Deny:    {number, code},
	Revoke:  {number},
	Credit:  {number, count},
	Ack:     {count},
	Ping:    {},
	Bye:     {},

	Endpoint: {number, name},
	Region:   {number, offset, key},
	Lease:    {number},
	Recall:   {number},
	Yield:    {number},
	Down:     {number, code},
	NoLease:  {number},
}
