package scale

import (
	"fmt"

	"pinwheel/lab/replay"
)

// tiles is a recorded run several times, side by side.
type tiles struct {
	base  *Base
	count int
}

// Tiled returns the job of copies of a run that don't communicate with each other.
func Tiled(b *Base, count int) replay.Job { return tiles{b, count} }

func (t tiles) Program() string { return t.base.name }
func (t tiles) Ranks() int      { return t.count * len(t.base.ranks) }

func (t tiles) Rank(id int) (replay.Stream, error) {
	if id < 0 || id >= t.Ranks() {
		return nil, fmt.Errorf("rank %d of %d", id, t.Ranks())
	}
	n := len(t.base.ranks)
	first := int32(id / n * n)
	s := &stream{model: &t.base.ranks[id%n]}
	comms := map[int32][]int32{}
	s.comm = func(c int32) []int32 {
		if comms[c] == nil && s.model.comms[c] != nil {
			for _, m := range s.model.comms[c] {
				comms[c] = append(comms[c], shifted(m, first))
			}
		}
		return comms[c]
	}
	s.names = true
	s.write = func(c *call, s *stream) {
		s.begin(c.computeNs)
		for _, r := range c.records {
			r.Peer = shifted(r.Peer, first)
			s.put(r)
		}
	}
	return s, nil
}

// shifted moves a rank; special values stay.
func shifted(rank, by int32) int32 {
	if rank < 0 {
		return rank
	}
	return rank + by
}
