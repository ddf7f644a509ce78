package trace

import (
	"encoding/binary"
	"math"
)

// Place is where a rank ran. Both numbers are 0 if that is not known.
type Place struct {
	Processors int // that the ranks of its node might use: without those that their control group's quota can't pay
	Ranks      int // of the job on its node
}

// DefinePlace says where this rank runs, once.
func (rw *RankWriter) DefinePlace(p Place) error {
	if p.Processors < 0 || p.Ranks < 0 || p.Processors > math.MaxInt32 || p.Ranks > math.MaxInt32 {
		return rw.wrap(invalidf("%d ranks on %d processors", p.Ranks, p.Processors))
	}
	rw.defs = binary.AppendUvarint(append(rw.defs, defPlace), uint64(p.Processors))
	rw.defs = binary.AppendUvarint(rw.defs, uint64(p.Ranks))
	return rw.w.err
}

// Place returns where this rank ran.
func (rr *RankReader) Place() Place { return rr.tables.place }
