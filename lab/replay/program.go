package replay

import (
	"fmt"
	"io"

	"pinwheel/trace"
)

// call is one communication call of one rank: its records, and the compute
// phase before it.
type call struct {
	op         trace.Op
	recs       []trace.Record // one per buffer; reused by the next call
	computeNs  int64          // processor time between the previous call and this one
	gapNs      int64          // the same by the recorded wall clock
	durationNs int64          // of the call, by the recorded wall clock
}

func (c *call) line() uint32 { return c.recs[0].Line }

// program groups the records of one rank into calls, reading one record ahead.
type program struct {
	rank    int
	stream  Stream
	ahead   trace.Record
	hasMore bool
	prevCPU int64 // processor time at the end of the previous call
	prevEnd int64 // wall clock at the end of the previous call
	records int64 // read so far
}

func newProgram(job Job, rank int) (*program, error) {
	s, err := job.Rank(rank)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", rank, err)
	}
	p := &program{rank: rank, stream: s}
	return p, p.read()
}

func (p *program) read() error {
	err := p.stream.Next(&p.ahead)
	p.hasMore = err == nil
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", p.rank, err)
	}
	p.records++
	return nil
}

// next fills in the next call. ok is false at the end of the rank's records.
func (p *program) next(c *call) (ok bool, err error) {
	if !p.hasMore {
		return false, nil
	}
	first := p.ahead
	c.op, c.recs = first.Op, append(c.recs[:0], first)
	if err := p.read(); err != nil {
		return false, err
	}
	for p.hasMore && SameCall(&first, &p.ahead) {
		c.recs = append(c.recs, p.ahead)
		if err := p.read(); err != nil {
			return false, err
		}
	}
	c.computeNs = max(0, first.StartCPUNs-p.prevCPU)
	c.gapNs = max(0, first.StartNs-p.prevEnd)
	c.durationNs = max(0, first.EndNs-first.StartNs)
	p.prevCPU, p.prevEnd = first.EndCPUNs, first.EndNs
	return true, nil
}

// SameCall tells whether b, which follows a in the records of a rank, belongs to the same call.
func SameCall(a, b *trace.Record) bool {
	return severalBuffers(a.Op) && b.Op == a.Op && b.StartNs == a.StartNs && b.EndNs == a.EndNs && b.Comm == a.Comm &&
		(b.Req == a.Req || a.Op == trace.OpWait)
}

// severalBuffers tells the calls that leave more than one record: both sides
// of an exchange, every slice, every request that one wait completed; and all that was unmapped before a call.
func severalBuffers(op trace.Op) bool {
	switch op {
	case trace.OpWait, trace.OpSendrecv, trace.OpAccumulate, trace.OpUnmap:
		return true
	}
	return isCollective(op) && op != trace.OpBarrier
}

// isNonblocking tells a call that starts something and leaves its end to a wait.
func (c *call) isNonblocking() bool {
	switch c.op {
	case trace.OpIsend, trace.OpIrecv:
		return true
	case trace.OpWait, trace.OpFree:
		return false
	}
	return c.recs[0].Req != 0
}
