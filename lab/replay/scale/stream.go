package scale

import (
	"io"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// stream makes the records of one derived rank from those of a recorded one, its model, one call at
// a time.
type stream struct {
	model *rank
	next  int // call of the model
	write func(c *call, s *stream)
	comm  func(id int32) []int32
	names bool // communicators keep their names: they have the members that they had

	nowNs   int64 // processor time of the derived rank
	out     []trace.Record
	read    int // of out
	lastReq uint32
	ended   bool

	iterations int // of the main loop so far
	limit      int // end after so many; 0: after those of the model
	recorded   int // iterations of the model
	loop       int // the call after its second one: from there on it is repeated
	round      int // iterations of the model so far, in this repetition
}

var _ replay.Stream = (*stream)(nil)

// Next writes calls until there is a record to return.
func (s *stream) Next(r *trace.Record) error {
	for s.read == len(s.out) {
		s.out, s.read = s.out[:0], 0
		if s.ended {
			return io.EOF
		}
		c := s.take()
		if c == nil {
			return io.EOF
		}
		s.write(c, s)
	}
	*r = s.out[s.read]
	s.read++
	return nil
}

// take returns the next call of the model, nil after the last.
func (s *stream) take() *call {
	if s.next == len(s.model.calls) {
		return nil
	}
	s.next++
	return &s.model.calls[s.next-1]
}

// peek returns the call of the model that take would.
func (s *stream) peek() *call {
	if s.next == len(s.model.calls) {
		return nil
	}
	return &s.model.calls[s.next]
}

// begin starts a call after a compute phase. Its records follow.
func (s *stream) begin(computeNs int64) { s.nowNs += computeNs + 1 }

// put adds a record to the call that has begun.
func (s *stream) put(r trace.Record) {
	r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = s.nowNs, s.nowNs, s.nowNs, s.nowNs
	s.out = append(s.out, r)
}

// copy writes a call as it is, after a compute phase.
func (s *stream) copy(c *call, computeNs int64) {
	s.begin(computeNs)
	for _, r := range c.records {
		s.put(r)
	}
}

// transfer is a record like r, with another peer and buffer.
func transfer(r trace.Record, peer int, at mem.Addr, bytes uint64) trace.Record {
	r.Peer, r.Addr, r.Bytes = int32(peer), at, bytes
	return r
}

// request returns a number for what a call leaves to a wait.
func (s *stream) request() uint32 {
	s.lastReq++
	return s.lastReq
}

// wait writes a wait for requests.
func (s *stream) wait(like trace.Record, computeNs int64, requests ...uint32) {
	s.begin(computeNs)
	for _, q := range requests {
		like.Req = q
		s.put(like)
	}
}

// unrepeated iterations come before the timed ones, or are followed by a barrier.
const unrepeated = 2

// iterated counts an iteration of the main loop, all of which is written. It ends a run that has as
// many as it may have, and repeats the recorded ones for a run that has more.
func (s *stream) iterated() {
	s.iterations++
	s.round++
	switch {
	case s.iterations == s.limit:
		s.ended = true
		s.begin(0)
		s.put(trace.Record{Op: trace.OpFinalize, Peer: trace.NoPeer})
	case s.round == unrepeated:
		s.loop = s.next
	case s.round == s.recorded && s.limit > 0:
		s.next, s.round = s.loop, unrepeated
	}
}

func (s *stream) Comm(id int32) []int32 { return s.comm(id) }

func (s *stream) CommName(id int32) uint64 {
	if s.names {
		return s.model.names[id]
	}
	return 0
}

// secondSite is a call site of the derived run that the recorded one has not, beside one that it has.
func (s *stream) secondSite(stack uint32) uint32 { return stack + uint32(len(s.model.frames)) }

func (s *stream) Frames(stack uint32) []uint64 {
	recorded := uint32(len(s.model.frames))
	if stack < recorded {
		return s.model.frames[stack]
	}
	frames := append([]uint64(nil), s.model.frames[stack-recorded]...)
	if len(frames) > 0 {
		frames[0]++
	}
	return frames
}

func (s *stream) LeftOut() []trace.LeftOut { return nil }
