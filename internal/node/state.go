package node

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"

	"pinwheel/internal/console"
)

// State is what a member publishes of itself. Counters and times count from the start of the
// process, so a reader gets rates from two looks.
type State struct {
	PID int
	// Instance tells members of one process apart; from 1.
	Instance int
	Rank     int    // in MPI_COMM_WORLD; -1 if it isn't known
	StartNs  int64  // of the process, after boot (CLOCK_BOOTTIME), in steps of 10 ms
	Program  string // name of the executable, at most 64 bytes
	AtNs     int64  // when this was published (CLOCK_BOOTTIME); 0 before the first time

	PinnedBytes, PeakBytes int64
	ShareBytes             int64 // of the node's budget; 0 without one
	DemandNs               int64 // cost of late registrations in the last second
	Helper                 Helper
	Cost                   Cost

	// Uses by what they found: a registration, a buffer that had never been registered, one that had been
	// deregistered or was being registered. StallNs is how long communication waited for those that were no hits.
	Hits, First, Late, StallNs int64
	// Predictions that a use followed, and those of them within 0.5 % and 5 % of the interval.
	Predicted, Within05, Within5 int64
}

// Helper is what a member publishes of its helper thread.
type Helper struct {
	Running    bool // there is one, which may be parked
	CPU        int  // that it was put on; -1: any
	Parked     bool
	Shared     bool    // with the ranks: it has no idle core
	ShareLimit float64 // of its rank's time that it may cost then
	CPUNs      int64   // processor time
	ActionNs   int64   // of it in registrations and deregistrations

	Wakeups, Registers, Deregs int64
}

// Cost is what a member has cost its process compared with a cache, as report.Cost, which says what each part is.
type Cost struct {
	Share                               float64
	AgainNs, WaitNs, DemandNs, HelperNs int64
	PriceNs                             float64
}

// Bits of the word with Parked, Shared and Running.
const (
	parkedBit  = 1 << 0
	sharedBit  = 1 << 1
	runningBit = 1 << 2
)

// programBytes of the published words hold the program, the rest numbers.
const programBytes = 64

// numbers lists what is published besides Program, in the order of the words. Identity and
// share are in the slot anyway.
func (s *State) numbers() []*int64 {
	h := &s.Helper
	return []*int64{
		&s.AtNs, &s.PinnedBytes, &s.PeakBytes, &s.DemandNs,
		&s.Hits, &s.First, &s.Late, &s.StallNs, &s.Predicted, &s.Within05, &s.Within5,
		&h.CPUNs, &h.ActionNs, &h.Wakeups, &h.Registers, &h.Deregs,
		&s.Cost.AgainNs, &s.Cost.WaitNs, &s.Cost.DemandNs, &s.Cost.HelperNs,
	}
}

// encode returns the words that are published.
func (s *State) encode() (out []uint64) {
	var program [programBytes]byte
	copy(program[:], s.Program)
	for i := 0; i < programBytes; i += wordBytes {
		out = append(out, binary.LittleEndian.Uint64(program[i:]))
	}
	var flags uint64
	if s.Helper.Parked {
		flags |= parkedBit
	}
	if s.Helper.Shared {
		flags |= sharedBit
	}
	if s.Helper.Running {
		flags |= runningBit
	}
	out = append(out, flags, uint64(int64(s.Helper.CPU)), math.Float64bits(s.Helper.ShareLimit),
		math.Float64bits(s.Cost.Share), math.Float64bits(s.Cost.PriceNs))
	for _, n := range s.numbers() {
		out = append(out, uint64(*n))
	}
	return out
}

// decode is the reverse of encode. It makes every value one that makes sense.
func (s *State) decode(in []uint64) {
	var program [programBytes]byte
	for i := 0; i < programBytes; i += wordBytes {
		binary.LittleEndian.PutUint64(program[i:], in[i/wordBytes])
	}
	name, _, _ := bytes.Cut(program[:], []byte{0})
	s.Program = console.Printable(string(name)) // it may end up on a terminal
	in = in[programBytes/wordBytes:]
	s.Helper.Parked, s.Helper.Shared = in[0]&parkedBit != 0, in[0]&sharedBit != 0
	s.Helper.Running = in[0]&runningBit != 0
	s.Helper.CPU = int(min(max(int64(in[1]), -1), maxCPU))
	s.Helper.ShareLimit = floatOf(in[2], 1)
	s.Cost.Share, s.Cost.PriceNs = floatOf(in[3], 1), floatOf(in[4], math.MaxFloat64)
	for i, n := range s.numbers() {
		*n = max(int64(in[5+i]), 0)
	}
}

// floatOf is a float64 from 0 to most, or 0 if it is another.
func floatOf(bits uint64, most float64) float64 {
	if v := math.Float64frombits(bits); v >= 0 && v <= most { // false for NaN
		return v
	}
	return 0
}

// maxCPU is above the number of every processor.
const maxCPU = 1 << 16

// publish writes the state of a member into its slot. There is one writer, which readers never
// block: they see by the sequence that it wrote meanwhile.
func publish(slot memory, s *State) {
	sequence := slot.load(slotSequence) | 1 // odd already if the content is nonsense
	slot.store(slotSequence, sequence)
	for i, w := range s.encode() {
		slot.store(slotPublished+i, w)
	}
	slot.store(slotSequence, sequence+1)
}

// publishedTries bounds how often a reader looks at a slot whose writer was interrupted.
const publishedTries = 100

// published reads the state of a living member. What it can't read of it stays zero.
func published(slot memory, budget int64) (s State) {
	var now [slotWords - slotPublished]uint64
	for range publishedTries {
		before := slot.load(slotSequence)
		for i := range now {
			now[i] = slot.load(slotPublished + i)
		}
		if before&1 == 0 && slot.load(slotSequence) == before {
			s.decode(now[:])
			break
		}
		runtime.Gosched()
	}
	o := ownerOf(slot)
	s.PID, s.Instance, s.StartNs = int(o.PID), int(o.Instance), int64(min(o.Start, math.MaxInt64/tickNs))*tickNs
	s.Rank = rankOf(slot)
	s.ShareBytes = min(max(int64(slot.load(slotGranted)), 0), budget)
	return s
}

// tickNs is the unit of start times in /proc: USER_HZ is 100 on every architecture.
const tickNs = 10_000_000

func ownerOf(slot memory) Owner {
	w := slot.load(slotPID)
	return Owner{PID: int32(uint32(w)), Instance: uint32(w >> 32), Start: slot.load(slotStart)}
}

// maxRank is above the rank of every process.
const maxRank = math.MaxInt32

func rankOf(slot memory) int { return int(min(max(int64(slot.load(slotRank)), -1), maxRank)) }
