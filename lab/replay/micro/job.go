package micro

import (
	"fmt"
	"io"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// Benchmark is what is replayed.
type Benchmark string

const (
	Overlap  Benchmark = "overlap"   // three buffers, each sent and then computed upon
	PingPong Benchmark = "ping-pong" // one buffer to and one fro
)

const (
	ranks       = 2
	buffers     = 3          // of Overlap in each round, unless they are fresh
	computeNs   = int64(1e9) // of Overlap after each message
	spacing     = mem.Addr(1) << 30
	firstBuffer = mem.Addr(1) << 40
)

// job is a replay.Job.
type job struct {
	benchmark Benchmark
	rounds    int
	bytes     uint64
	fresh     bool // no buffer is used in two rounds of Overlap
}

var _ replay.Job = job{}

// jobs are those that Compare replays, but for the size of their messages: Overlap with the rounds of the paper, with
// ten times as many, and with fresh buffers; and PingPong.
var jobs = []job{
	{benchmark: Overlap, rounds: 10}, {benchmark: Overlap, rounds: 100}, {benchmark: Overlap, rounds: 10, fresh: true},
	{benchmark: PingPong, rounds: 100},
}

// messages is how many there are, and computedNs how long rank 0 computes.
func (j job) messages() (messages int, computedNs int64) {
	if j.benchmark == PingPong {
		return 2 * j.rounds, 0
	}
	n := j.rounds * buffers
	return n, int64(n) * computeNs
}

func (j job) Program() string { return string(j.benchmark) }
func (j job) Ranks() int      { return ranks }

func (j job) Rank(id int) (replay.Stream, error) {
	if id < 0 || id >= ranks {
		return nil, fmt.Errorf("rank %d of %d", id, ranks)
	}
	s := &stream{job: j, me: id}
	s.put(trace.Record{Op: trace.OpBarrier, Peer: trace.NoPeer}, 0)
	for i := range j.rounds {
		s.round(i)
	}
	s.put(trace.Record{Op: trace.OpFinalize, Peer: trace.NoPeer}, 0)
	return s, nil
}

// stream has the records of a rank.
type stream struct {
	job
	me      int
	nowNs   int64 // of its processor
	records []trace.Record
	read    int
}

var _ replay.Stream = (*stream)(nil)

func (s *stream) round(i int) {
	if s.benchmark == PingPong {
		s.message(0, 0)
		s.message(1, 1)
		return
	}
	for b := range buffers {
		if s.fresh {
			b += i * buffers
		}
		s.message(0, b)
		s.nowNs += computeNs
	}
}

// message is one to or from the other rank. Each buffer of a round has a call site of its own.
func (s *stream) message(from, buffer int) {
	r := trace.Record{Op: trace.OpSend, Dir: trace.DirRead, Peer: int32(1 - s.me), Bytes: s.bytes,
		Addr: firstBuffer + mem.Addr(buffer)*spacing}
	if s.me != from {
		r.Op, r.Dir = trace.OpRecv, trace.DirWrite
	}
	s.put(r, uint32(1+buffer%buffers))
}

// put adds a call, which takes no time by itself.
func (s *stream) put(r trace.Record, site uint32) {
	r.StartNs, r.EndNs, r.StartCPUNs, r.EndCPUNs = s.nowNs, s.nowNs, s.nowNs, s.nowNs
	r.Stack, r.Line = site, uint32(len(s.records)+1)
	s.records = append(s.records, r)
}

func (s *stream) Next(r *trace.Record) error {
	if s.read == len(s.records) {
		return io.EOF
	}
	*r = s.records[s.read]
	s.read++
	return nil
}

func (s *stream) Comm(int32) []int32          { return []int32{0, 1} }
func (s *stream) CommName(int32) uint64       { return 1 }
func (s *stream) Frames(site uint32) []uint64 { return []uint64{0x1000 + 16*uint64(site), 0x900} }
func (s *stream) LeftOut() []trace.LeftOut    { return nil }
