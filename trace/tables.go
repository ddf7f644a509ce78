package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"pinwheel/mem"
)

// tables are the definitions of one rank: what Record.Stack and Record.Comm
// refer to.
type tables struct {
	ranks      int        // of the run
	stacks     [][]uint64 // [0] is "no call site"
	comms      map[int32]comm
	matches    map[uint32]match // by Record.Req; nil if there are none
	leftOut    []LeftOut
	unseen     []Unseen
	place      Place
	modules    []Module
	stackTotal int // return addresses in stacks
	commTotal  int // members in comms
}

// comm is a communicator. The name is the same on all its members and on no
// other communicator; 0 where the recorder could not tell.
type comm struct {
	name    uint64
	members []int32
}

func newTables(ranks int) tables {
	return tables{ranks: ranks, stacks: make([][]uint64, 1), comms: map[int32]comm{}}
}

func (t *tables) addStack(frames []uint64) error {
	if len(frames) > maxStackFrames || len(t.stacks) >= maxStacks || t.stackTotal+len(frames) > maxStackTotal {
		return fmt.Errorf("%w: call site %d with %d return addresses", ErrLimit, len(t.stacks), len(frames))
	}
	t.stackTotal += len(frames)
	t.stacks = append(t.stacks, slices.Clone(frames))
	return nil
}

func (t *tables) addComm(id int32, name uint64, members []int32) error {
	if len(t.comms) >= maxComms || t.commTotal+len(members) > maxCommTotal {
		return fmt.Errorf("%w: communicator %d with %d members", ErrLimit, id, len(members))
	}
	if _, ok := t.comms[id]; ok {
		return invalidf("communicator %d is defined twice", id)
	}
	if len(members) == 0 {
		return invalidf("communicator %d has no members", id)
	}
	for _, m := range members {
		if m < 0 && m != Elsewhere || int(m) >= t.ranks {
			return invalidf("communicator %d has member %d in a run of %d ranks", id, m, t.ranks)
		}
	}
	t.commTotal += len(members)
	t.comms[id] = comm{name, slices.Clone(members)}
	return nil
}

// check reports what is wrong with the fields of a record other than times.
func (t *tables) check(r *Record) error {
	if r.Op == OpInvalid || r.Op >= numOps {
		return invalidf("unknown op %d", r.Op)
	}
	if r.Dir > DirWrite {
		return invalidf("unknown direction %d", r.Dir)
	}
	if int(r.Stack) >= len(t.stacks) {
		return invalidf("unknown call site %d", r.Stack)
	}
	if r.Bytes > 0 {
		if _, err := mem.NewRange(r.Addr, r.Bytes); err != nil {
			return invalidf("%v", err)
		}
	}
	if r.Peer < Elsewhere || int(r.Peer) > t.ranks {
		return invalidf("peer %d in a run of %d ranks", r.Peer, t.ranks)
	}
	if _, ok := t.comms[r.Comm]; !ok && r.Comm != 0 { // a call without a communicator has 0
		return invalidf("unknown communicator %d", r.Comm)
	}
	return nil
}

// A definition frame is a sequence of: 'S', number of return addresses, each;
// or 'C', id, number of members, each; or 'N', id, name, number of members, each;
// or 'M', request, peer, tag; or 'L', number of calls, length of text, text; or 'B', tag of a module, and
// length and text of its name and of its build ID; or 'U', times, bytes, length of text, text; or 'P', processors, ranks,
// nanoseconds.
const (
	defStack     = 'S'
	defComm      = 'C'
	defNamedComm = 'N' // from version 2 on, as what follows
	defMatch     = 'M'
	defLeftOut   = 'L'
	defModule    = 'B' // from version 3 on
	defUnseen    = 'U' // from version 4 on, as what follows
	defPlace     = 'P'
)

func appendStackDef(b []byte, frames []uint64) []byte {
	b = binary.AppendUvarint(append(b, defStack), uint64(len(frames)))
	for _, f := range frames {
		b = binary.AppendUvarint(b, f)
	}
	return b
}

func appendCommDef(b []byte, id int32, name uint64, members []int32) []byte {
	b = binary.AppendVarint(append(b, defNamedComm), int64(id))
	b = binary.AppendUvarint(b, name)
	b = binary.AppendUvarint(b, uint64(len(members)))
	for _, m := range members {
		b = binary.AppendVarint(b, int64(m))
	}
	return b
}

// load adds the definitions of one frame.
func (t *tables) load(raw []byte) error {
	in := cursor{b: raw}
	var frames []uint64
	for in.off < len(raw) {
		var err error
		switch in.byte() {
		case defStack:
			n := in.uvarint()
			if n > maxStackFrames {
				return corruptf("call site of %d return addresses", n)
			}
			frames = frames[:0]
			for range n {
				frames = append(frames, in.uvarint())
			}
			err = t.addStack(frames)
		case defComm:
			err = t.loadComm(&in, in.int32(), 0, func() int32 { return int32(min(in.uvarint(), MaxRanks)) })
		case defNamedComm:
			err = t.loadComm(&in, in.int32(), in.uvarint(), in.int32)
		case defMatch:
			err = t.addMatch(in.small(), match{in.int32(), in.int32()})
		case defLeftOut:
			err = t.addLeftOut(LeftOut{Calls: in.uvarint(), What: in.text()})
		case defModule:
			tag := in.uvarint()
			in.bad = in.bad || tag > math.MaxUint16
			err = t.addModule(Module{uint16(tag), in.text(), in.text()})
		case defUnseen:
			err = t.addUnseen(Unseen{Times: in.uvarint(), Bytes: in.uvarint(), What: in.text()})
		case defPlace:
			t.place = Place{int(in.small()), int(in.small()), in.after(0)}
		default:
			return corruptf("unknown definition")
		}
		if in.bad {
			return corruptf("cut definition")
		}
		if err != nil {
			return corruptf("%v", err)
		}
	}
	return nil
}

// loadComm adds a communicator whose members are still to be read.
func (t *tables) loadComm(in *cursor, id int32, name uint64, member func() int32) error {
	n := in.uvarint()
	if n > uint64(len(in.b)-in.off) {
		return corruptf("communicator of %d members", n)
	}
	members := make([]int32, n)
	for i := range members {
		members[i] = member()
	}
	return t.addComm(id, name, members)
}
