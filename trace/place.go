package trace

import (
	"encoding/binary"
	"math"
)

// Place is where a rank ran. A number is 0 if it is not known.
type Place struct {
	Processors int // that the ranks of its node might use: without those that their control group's quota can't pay
	Ranks      int // of the job on its node
	// WatchNs is how long it took until the kernel told of changes of mappings: before that, no registration is kept.
	WatchNs int64
}

// DefinePlace says where this rank runs. The last one counts.
func (rw *RankWriter) DefinePlace(p Place) error {
	if p.WatchNs < 0 || p.Processors < 0 || p.Ranks < 0 || p.Processors > math.MaxInt32 || p.Ranks > math.MaxInt32 {
		return rw.wrap(invalidf("%d ranks on %d processors", p.Ranks, p.Processors))
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defPlace), uint64(p.Processors))
	rw.defs = binary.AppendUvarint(rw.defs, uint64(p.Ranks))
	rw.defs = binary.AppendUvarint(rw.defs, uint64(p.WatchNs))
	return rw.w.err
}

// Place returns where this rank ran.
func (rr *RankReader) Place() Place { return rr.tables.place }
