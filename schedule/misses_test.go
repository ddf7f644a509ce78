package schedule

import (
	"slices"
	"testing"

	"pinwheel/mem"
)

// listener is a Decider that only notes what was missed.
type listener struct {
	Decider
	of []mem.RegionID
}

func (l *listener) Missed(m Miss, _ int64) { l.of = append(l.of, m.Region) }

func TestOnlyTheLatestMissesAreKept(t *testing.T) {
	var m Misses
	var told listener
	for id := range mem.RegionID(2*mostMisses + 3) {
		m.Add(Miss{Region: id + 1})
	}
	m.Tell(&told, 0)
	m.Tell(&told, 0)
	got := told.of
	if len(got) != mostMisses || got[0] != mostMisses+4 || !slices.IsSorted(got) {
		t.Errorf("told of %v", got)
	}
}
