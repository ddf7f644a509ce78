package perturb

import (
	"io"
	"math/rand/v2"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// disorder is a made-up job of pairs of ranks that exchange buffers.
type disorder struct {
	name  string
	seed  uint64
	steps int
	// next chooses the buffer of an exchange, its call site, and the time before it, in means.
	next func(s *exchanges) (buffer int, site uint32, gap float64)
}

const (
	pairs         = 2
	exchangesEach = 5000
	buffers       = 64 // to send from, and as many to receive into
	callSites     = 8
	meanGapNs     = 3_000_000 // between two exchanges of a rank
	leastPages    = 16        // of a buffer
	morePages     = 1008
	heapStart     = 0x7f0000000000
	bufferSpace   = 64 << 20 // more than any buffer is long
)

// Random returns traffic without any order: buffers, sizes, call sites and times are independent of each other and of
// what was before.
func Random(seed uint64) replay.Job {
	return &disorder{"random traffic", seed, exchangesEach, func(s *exchanges) (int, uint32, float64) {
		return s.rng.IntN(buffers), uint32(s.rng.IntN(callSites)), s.rng.ExpFloat64()
	}}
}

// Drifting returns a loop over eight call sites whose buffers move on: each is used a few times, then its call site takes
// another one, at times one that served elsewhere before.
func Drifting(seed uint64) replay.Job {
	return &disorder{"drifting buffers", seed, exchangesEach, func(s *exchanges) (int, uint32, float64) {
		site := s.step % callSites
		if s.left[site] == 0 {
			s.current[site], s.left[site] = s.rng.IntN(buffers), 2+s.rng.IntN(14)
		}
		s.left[site]--
		return s.current[site], uint32(site), (0.5 + float64(site)/callSites) * max(0, 1+0.05*s.rng.NormFloat64())
	}}
}

func (d *disorder) Program() string { return d.name }
func (d *disorder) Ranks() int      { return 2 * pairs }

// Rank returns the exchanges of a rank. The ranks of a pair have the same ones.
func (d *disorder) Rank(id int) (replay.Stream, error) {
	s := &exchanges{d: d, id: id, rng: rand.New(rand.NewPCG(d.seed, uint64(id/2)))}
	for i := range s.pages {
		s.pages[i] = uint64(leastPages + s.rng.IntN(morePages))
	}
	return s, nil
}

// exchanges are the records of one rank of a disorder.
type exchanges struct {
	d       *disorder
	id      int
	rng     *rand.Rand
	pages   [buffers]uint64
	step    int
	nowNs   int64
	half    trace.Record // of an exchange: the second one
	isHalf  bool
	ended   bool
	current [callSites]int // Drifting: the buffer of each site
	left    [callSites]int // and for how many more uses
}

// Next implements replay.Stream: two records for each exchange.
func (s *exchanges) Next(r *trace.Record) error {
	switch {
	case s.isHalf:
		*r, s.isHalf = s.half, false
		return nil
	case s.ended:
		return io.EOF
	case s.step == s.d.steps:
		s.ended = true
		*r = trace.Record{StartNs: s.nowNs, EndNs: s.nowNs, StartCPUNs: s.nowNs, EndCPUNs: s.nowNs, Op: trace.OpFinalize, Peer: trace.NoPeer}
		return nil
	}
	buffer, site, gap := s.d.next(s)
	s.step++
	s.nowNs += 1 + int64(gap*meanGapNs)
	*r = trace.Record{
		StartNs: s.nowNs, EndNs: s.nowNs, StartCPUNs: s.nowNs, EndCPUNs: s.nowNs, Op: trace.OpSendrecv, Dir: trace.DirRead,
		Addr: heapStart + mem.Addr(buffer*bufferSpace), Bytes: s.pages[buffer] * mem.PageSize, Peer: int32(s.id ^ 1), Stack: site,
	}
	s.half, s.isHalf = *r, true
	s.half.Dir, s.half.Addr = trace.DirWrite, r.Addr+buffers*bufferSpace
	return nil
}

// Comm implements replay.Stream: the one communicator has all ranks.
func (s *exchanges) Comm(id int32) []int32 {
	if id != 0 {
		return nil
	}
	var all []int32
	for r := range int32(2 * pairs) {
		all = append(all, r)
	}
	return all
}

// CommName implements replay.Stream.
func (s *exchanges) CommName(int32) uint64 { return 0 }

// Frames implements replay.Stream.
func (s *exchanges) Frames(stack uint32) []uint64 { return []uint64{0x1000 + 16*uint64(stack), 0x100} }

// LeftOut implements replay.Stream.
func (s *exchanges) LeftOut() []trace.LeftOut { return nil }
