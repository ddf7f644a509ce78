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
	last         call   // that ended the frame before the current one
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
		if rr.tables.matches != nil && r.Req != 0 {
			rr.tables.settle(r)
		}
		if rr.err = rr.checkEnds(r); rr.err != nil {
			break
		}
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
func (rr *RankReader) Comm(id int32) []int32 { return rr.tables.comms[id].members }

// CommName returns what is the same for a communicator on all its members, 0 if that isn't known.
func (rr *RankReader) CommName(id int32) uint64 { return rr.tables.comms[id].name }

// Frames returns the return addresses of a call site, innermost first; nil
// for Record.Stack 0 and for unknown ones. It must not be modified.
func (rr *RankReader) Frames(stack uint32) []uint64 {
	if int(stack) >= len(rr.tables.stacks) {
		return nil
	}
	return rr.tables.stacks[stack]
}

func (rr *RankReader) nextFrame() error {
	if rr.in.off < len(rr.in.b) {
		return rr.wrap(rr.cur, corruptf("%d bytes after the last record of the frame", len(rr.in.b)-rr.in.off))
	}
	if len(rr.frames) == 0 {
		return io.EOF
	}
	e := rr.frames[0]
	rr.frames = rr.frames[1:]
	if err := rr.load(e); err != nil {
		return err
	}
	rr.left = e.records
	rr.last = rr.ctx.call
	rr.ctx.reset()
	return nil
}

// checkEnds verifies what can't be seen within a frame: that its first record
// follows the frame before, and that both ends are where the index has them.
func (rr *RankReader) checkEnds(r *Record) error {
	if rr.left == rr.cur.records-1 {
		if err := rr.ctx.call.follow(rr.last); err != nil || r.StartNs != rr.cur.firstNs {
			return rr.wrap(rr.cur, corruptf("the frame begins at a wrong time"))
		}
	}
	if rr.left == 0 && r.EndNs != rr.cur.lastNs {
		return rr.wrap(rr.cur, corruptf("the frame ends at a wrong time"))
	}
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
