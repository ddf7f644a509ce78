package helper

import (
	"slices"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

func TestThreadTellsTheDeciderOfAMiss(t *testing.T) {
	k := newKeeper(never / 2)
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU})
	th.Missed(7)
	testwait.Until(t, "the Decider hears of the miss", func() bool { return slices.Equal(k.misses(), []mem.RegionID{7}) })
}

// The event of the use that missed says all that the miss does. After it, the miss could be taken for one of the next use.
func TestMissIsNotToldOfAfterItsUse(t *testing.T) {
	k := newKeeper(never / 2)
	d := &driver{Thread: &Thread{opt: ThreadOptions{Decider: k}, wake: make(chan struct{}, 1)}, budget: k.Budget(), pace: NewPacer(0)}
	for _, missed := range []mem.RegionID{7, 8} {
		d.Missed(missed)
		d.Missed(0) // of a region that is not known
		d.event = *use(7, ms)
		d.take(ms)
		d.heed(ms)
	}
	if got := k.misses(); !slices.Equal(got, []mem.RegionID{8}) {
		t.Errorf("told of misses %v after a use of 7, want that of 8 only", got)
	}
}

// misses returns the regions of Missed.
func (k *keeper) misses() []mem.RegionID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.missed)
}
