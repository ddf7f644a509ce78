package trace

import (
	"fmt"
	"io"
)

// RankReader reads the records of one rank in order. It belongs to one goroutine.
type RankReader struct {
	f            *File
	rank         int
	fromNs, toNs int64
	tables       tables
	frames       []indexEntry // still to be read, after the current one
	cur          indexEntry
	buf          frameBuffer
	in           cursor
	ctx          context
	left         uint32 // records of the current frame still to be decoded
	err          error  // sticks
}

// Next reads the next record into r. It returns io.EOF after the last one,
// and an error that matches ErrCorrupt if a frame is damaged. It does not
// allocate once buffers have grown.
func (rr *RankReader) Next(r *Record) error {
	for rr.err == nil {
		if rr.left == 0 {
			rr.err = rr.nextFrame()
			continue
		}
		if !rr.ctx.decode(&rr.in, &rr.tables, r) {
			rr.err = rr.wrap(rr.cur, corruptf("record %d of %d of the frame", rr.cur.records-rr.left+1, rr.cur.records))
			break
		}
		rr.left--
		if r.StartNs >= rr.toNs {
			rr.err = io.EOF
			break
		}
		if r.EndNs >= rr.fromNs {
			return nil
		}
	}
	return rr.err
}

// Comm returns the members of a communicator as world ranks, in the order of
// their rank in it; nil if this rank has no such communicator. It must not
// be modified.
func (rr *RankReader) Comm(id int32) []int32 { return rr.tables.comms[id] }

// Frames returns the return addresses of a call site, innermost first; nil
// for Record.Stack 0 and for unknown ones. It must not be modified.
func (rr *RankReader) Frames(stack uint32) []uint64 {
	if int(stack) >= len(rr.tables.stacks) {
		return nil
	}
	return rr.tables.stacks[stack]
}

// Stacks returns the number of call sites: Record.Stack is below it.
func (rr *RankReader) Stacks() int { return len(rr.tables.stacks) }

func (rr *RankReader) nextFrame() error {
	if rr.in.off < len(rr.in.b) {
		return rr.wrap(rr.cur, corruptf("%d bytes after the last record of the frame", len(rr.in.b)-rr.in.off))
	}
	if len(rr.frames) == 0 {
		return io.EOF
	}
	endNs, startNs := rr.ctx.endNs, rr.ctx.startNs
	e := rr.frames[0]
	rr.frames = rr.frames[1:]
	// A frame may begin with more buffers of the call that ended the one before.
	if e.firstNs < endNs && e.firstNs != startNs {
		return rr.wrap(e, corruptf("the frame begins before the one before it ends"))
	}
	if err := rr.load(e); err != nil {
		return err
	}
	rr.left = e.records
	rr.ctx.reset()
	return nil
}

// load reads a frame that the index names into rr.in.
func (rr *RankReader) load(e indexEntry) error {
	fi, err := rr.buf.read(rr.f, e.offset)
	if err == nil && fi != e.frameInfo {
		err = corruptf("index and frame disagree")
	}
	if err != nil {
		return rr.wrap(e, err)
	}
	rr.cur = e
	rr.in = cursor{b: rr.buf.raw}
	return nil
}

func (rr *RankReader) wrap(e indexEntry, err error) error {
	return fmt.Errorf("%s: rank %d, frame at byte %d: %w", rr.f.path, rr.rank, e.offset, err)
}
