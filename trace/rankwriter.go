package trace

import (
	"encoding/binary"
	"fmt"
)

// RankWriter appends the records of one rank.
type RankWriter struct {
	w       *Writer
	rank    int
	tables  tables
	stackID map[string]uint32 // by the bytes of the return addresses
	key     []byte            // scratch for stackID

	defs []byte // definitions since the last flush
	raw  []byte // records since the last flush
	info frameInfo
	enc  context
	last call
}

func newRankWriter(w *Writer, rank int) *RankWriter {
	return &RankWriter{w: w, rank: rank, tables: newTables(w.header.Ranks), stackID: map[string]uint32{"": 0}}
}

// DefineComm defines a communicator of this rank: its members as world ranks,
// or Elsewhere, in the order of their rank in it. name is the same for all its
// members and for no other communicator; 0 if the caller can't tell: then the
// k-th communicator of the same members is taken for the same one everywhere.
// An ID is defined once, before its first use.
func (rw *RankWriter) DefineComm(id int32, name uint64, members []int32) error {
	if err := rw.tables.addComm(id, name, members); err != nil {
		return rw.wrap(err)
	}
	rw.defs = appendCommDef(rw.defs, id, name, members)
	rw.flushDefsIfLarge()
	return rw.w.err
}

// Stack returns the Record.Stack of a call site, given its return addresses,
// innermost first. The empty call site is 0.
func (rw *RankWriter) Stack(frames []uint64) (uint32, error) {
	rw.key = rw.key[:0]
	for _, f := range frames {
		rw.key = binary.LittleEndian.AppendUint64(rw.key, f)
	}
	if id, ok := rw.stackID[string(rw.key)]; ok {
		return id, nil
	}
	if err := rw.tables.addStack(frames); err != nil {
		return 0, rw.wrap(err)
	}
	id := uint32(len(rw.tables.stacks) - 1)
	rw.stackID[string(rw.key)] = id
	rw.defs = appendStackDef(rw.defs, frames)
	rw.flushDefsIfLarge()
	return id, rw.w.err
}

// Append adds the next record. It fails with ErrTime or ErrInvalid, adding
// nothing, if r breaks the rules of the format, and with the writer's error
// once the file can't be written.
func (rw *RankWriter) Append(r *Record) error {
	if err := callOf(r).follow(rw.last); err != nil {
		return rw.wrap(err)
	}
	if err := rw.tables.check(r); err != nil {
		return rw.wrap(err)
	}
	if rw.info.records == 0 {
		rw.info = frameInfo{kind: frameRecords, rank: uint32(rw.rank), firstNs: r.StartNs}
	}
	rw.raw = rw.enc.encode(rw.raw, r)
	rw.info.records++
	rw.info.lastNs = r.EndNs
	rw.last = callOf(r)
	if len(rw.raw) >= targetFrameBytes {
		rw.flush()
	}
	return rw.w.err
}

func (rw *RankWriter) wrap(err error) error {
	return fmt.Errorf("rank %d: %w", rw.rank, err)
}

// flush writes out definitions, then the records that use them.
func (rw *RankWriter) flush() {
	rw.flushDefs()
	if rw.info.records == 0 {
		return
	}
	rw.w.writeFrame(rw.info, rw.raw)
	rw.raw = rw.raw[:0]
	rw.info.records = 0
	rw.enc.reset()
}

func (rw *RankWriter) flushDefs() {
	if len(rw.defs) == 0 {
		return
	}
	rw.w.writeFrame(frameInfo{kind: frameDefs, rank: uint32(rw.rank)}, rw.defs)
	rw.defs = rw.defs[:0]
}

// flushDefsIfLarge keeps a definition frame below the limit of a frame.
func (rw *RankWriter) flushDefsIfLarge() {
	if len(rw.defs) >= targetFrameBytes {
		rw.flushDefs()
	}
}
