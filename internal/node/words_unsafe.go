package node

import (
	"sync/atomic" // raw words: other processes map them, too
	"unsafe"
)

// The segment consists of 64-bit words: a header, then one slot for each member.
const (
	wordBytes   = 8
	headerWords = 512
	slotWords   = 64
	slots       = 512 // more ranks than any node has processors
	words       = headerWords + slots*slotWords
	sizeBytes   = words * wordBytes
)

// layout is the version of all that follows. Processes with another one don't meet, because the
// names of their sockets differ.
const layout = 2

const magic = 0x65646f6e77706e70

// Words of the header. Those up to headerBudget stay as they are once they are written.
const (
	headerMagic  = iota
	headerLayout // layout<<32 | slots
	headerBudget // bytes; 0 until a member with a limit joins
	headerRanks  // of the job on this node, as its launcher says; 0 as before
	headerHigh   // slots that were ever used
	headerBroken // 1: a member found nonsense, and nobody moves shares any more
	headerMovedNs
	headerBoard  = 16 // BoardWords of them: UpdateBoard
	headerJoined = 64 // a bit for each rank that ever joined, modulo joinedBits
	joinedBits   = (headerWords - headerJoined) * 64
)

// Words of a slot.
const (
	slotState    = iota // slotFree or slotLive
	slotPID             // and the instance<<32
	slotStart           // clock ticks after boot
	slotRank            // -1: unknown
	slotGranted         // bytes: raised by the owner under the lock, lowered by the owner
	slotCeiling         // bytes: the owner may not raise slotGranted above this
	slotWanted          // bytes: the owner can't go on without them
	slotDeadNs          // when somebody found the process gone
	slotClaim           // processor + claimBias; 0: no claim
	slotClaimed         // bytes of the process, for the claim
	slotSequence        // odd while the owner writes what follows
	slotPublished
)

const (
	slotFree = 0
	slotLive = 1
)

// claimBias makes AnyCPU, which is -1, differ from no claim.
const claimBias = 2

// memory is a mapped segment.
type memory []byte

func (m memory) word(i int) *uint64 {
	_ = m[i*wordBytes+wordBytes-1]
	return (*uint64)(unsafe.Pointer(&m[i*wordBytes]))
}

func (m memory) load(i int) uint64     { return atomic.LoadUint64(m.word(i)) }
func (m memory) store(i int, v uint64) { atomic.StoreUint64(m.word(i), v) }

// slot returns the words of a slot.
func (m memory) slot(i int) memory {
	at := (headerWords + i*slotWords) * wordBytes
	return m[at : at+slotWords*wordBytes]
}
