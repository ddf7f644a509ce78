package scale

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// Base is a recorded run in memory, from which larger ones are derived. It is immutable.
type Base struct {
	name    string // of the trace: "ft.B.4"
	program string // "ft"
	class   string // "B"
	ranks   []rank
	records int64
}

// rank is what one rank has recorded.
type rank struct {
	calls  []call
	comms  map[int32][]int32
	names  map[int32]uint64
	frames [][]uint64
}

// call is one call: its records, and the processor time before it.
type call struct {
	records   []trace.Record
	computeNs int64
}

func (c *call) op() trace.Op { return c.records[0].Op }

// ErrUnfit is returned for a trace or a number of ranks from which nothing can be derived.
var ErrUnfit = errors.New("can't be scaled")

// Load reads a trace of all ranks of a run. Every call must be in it.
func Load(f *trace.File) (*Base, error) {
	b := &Base{name: f.Header().Program}
	parts := strings.Split(b.name, ".")
	b.program = strings.ToLower(parts[0])
	if len(parts) > 1 {
		b.class = strings.ToUpper(parts[1])
	}
	if torn := f.Torn(); torn != nil {
		return nil, torn
	}
	if len(f.Ranks()) != f.Header().Ranks {
		return nil, fmt.Errorf("%s %w: the trace has %d of %d ranks", b.name, ErrUnfit, len(f.Ranks()), f.Header().Ranks)
	}
	for id := range f.Header().Ranks {
		r, err := f.Rank(id)
		if err != nil {
			return nil, err
		}
		loaded, err := load(r)
		if err != nil {
			return nil, err
		}
		if len(r.LeftOut()) > 0 {
			return nil, fmt.Errorf("%s %w: its recording lacks calls", b.name, ErrUnfit)
		}
		for i := range loaded.calls {
			b.records += int64(len(loaded.calls[i].records))
		}
		b.ranks = append(b.ranks, loaded)
	}
	return b, nil
}

func load(s *trace.RankReader) (rank, error) {
	r := rank{comms: map[int32][]int32{}, names: map[int32]uint64{}}
	var records []trace.Record
	for {
		var x trace.Record
		err := s.Next(&x)
		if err == io.EOF {
			break
		}
		if err != nil {
			return rank{}, err
		}
		if members := s.Comm(x.Comm); r.comms[x.Comm] == nil && members != nil {
			r.comms[x.Comm], r.names[x.Comm] = members, s.CommName(x.Comm)
		}
		for len(r.frames) <= int(x.Stack) {
			r.frames = append(r.frames, s.Frames(uint32(len(r.frames))))
		}
		records = append(records, x)
	}
	prevCPU := int64(0)
	for len(records) > 0 {
		n := 1
		for n < len(records) && replay.SameCall(&records[0], &records[n]) {
			n++
		}
		r.calls = append(r.calls, call{records[:n], max(0, records[0].StartCPUNs-prevCPU)})
		prevCPU = records[0].EndCPUNs
		records = records[n:]
	}
	return r, nil
}

// Name is that of the trace.
func (b *Base) Name() string { return b.name }

// Ranks is how many ranks were recorded.
func (b *Base) Ranks() int { return len(b.ranks) }
