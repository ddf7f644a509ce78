package trace

import "pinwheel/mem"

// Op is an MPI call as traced.
type Op uint8

// Dir says what a call does with the buffer.
type Dir uint8

const (
	DirNone  Dir = iota
	DirRead      // the buffer is sent from: "s" in CSV
	DirWrite     // the buffer is received into: "r" in CSV
)

const (
	OpInvalid Op = iota
	OpSend
	OpSsend
	OpRsend
	OpIsend
	OpRecv
	OpIrecv
	OpWait
	OpSendrecv
	OpBcast
	OpReduce
	OpAllreduce
	OpAllgather
	OpAlltoall
	OpAlltoallv
	OpBarrier
	OpFinalize

	// From version 2 of the format on.

	OpBsend // does not wait for its receiver
	OpGather
	OpScatter
	OpScan // inclusive or exclusive
	OpReduceScatter
	OpNeighbor // a collective of neighbours in a topology
	OpProbe    // has found a message
	OpPut
	OpGet
	OpAccumulate
	OpFree // the request ends by itself: nobody waits for it

	// From version 4 of the format on.

	// No call: before the next one, the program has unmapped, moved or discarded pages. Bytes from Addr on are what has
	// changed; buffers there have ended. Its time is that of the next call.
	OpUnmap
	numOps
)

var opNames = [numOps]string{"invalid", "send", "ssend", "rsend", "isend", "recv", "irecv", "wait", "sendrecv",
	"bcast", "reduce", "allreduce", "allgather", "alltoall", "alltoallv", "barrier", "finalize",
	"bsend", "gather", "scatter", "scan", "reduce_scatter", "neighbor", "probe", "put", "get", "accumulate", "free", "unmap"}

func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return "invalid"
}

// Special values of Record.Peer and Record.Tag.
const (
	AnySource = -1 // where the recorder could not learn which it was
	NoPeer    = -2
	Elsewhere = -3 // a process outside of MPI_COMM_WORLD, as a spawned one: its calls are in another trace
	AnyTag    = -1
)

// Record is one buffer of one communication call of one rank, or an OpUnmap. Records of
// the same call (both buffers of a collective, every slice of an alltoallv)
// follow each other with equal times and Op.
type Record struct {
	StartNs, EndNs       int64 // wall clock since the first barrier
	StartCPUNs, EndCPUNs int64 // processor time of the thread since the same point
	Addr                 mem.Addr
	Bytes                uint64
	Peer, Tag, Comm      int32 // Comm is an ID of this rank's communicators
	// number of a request: the call, of whichever Op, starts or (OpWait, OpFree) ends it; 0 for none
	Req   uint32
	Stack uint32 // index of the call site in this rank's stack table
	Line  uint32 // line in the source that this was imported from, for messages
	Op    Op
	Dir   Dir
}
