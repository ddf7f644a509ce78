package regcache

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// TestIDIndexAgainstAMap gives IDs in sequence with gaps, as the cache does, and lets many of them fall on few places.
func TestIDIndexAgainstAMap(t *testing.T) {
	testwait.SkipUnderRace(t, "it has one thread")
	rapid.Check(t, func(t *rapid.T) {
		var x idIndex
		model := map[mem.RegionID]*region{}
		last := mem.RegionID(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if g := x.get(mem.RegionID(rapid.Uint64Range(0, uint64(last)).Draw(t, "id"))); g != nil &&
				rapid.Bool().Draw(t, "remove") {
				x.remove(g)
				delete(model, g.id)
				continue
			}
			last += mem.RegionID(rapid.SampledFrom([]uint64{1, 1, 2, 63, 64, 128}).Draw(t, "gap"))
			model[last] = &region{id: last}
			x.add(model[last])
		}
		if x.len() != len(model) {
			t.Fatalf("%d regions, want %d", x.len(), len(model))
		}
		for id := range last + 2 {
			if got := x.get(id); got != model[id] {
				t.Fatalf("%d is %v, want %v", id, got, model[id])
			}
		}
		for g := range x.all() {
			delete(model, g.id)
		}
		if len(model) > 0 {
			t.Fatalf("all yields nothing of %v", model)
		}
	})
}

// TestIDIndexHasShortRuns removes nothing, because it is the run that a removal goes through.
func TestIDIndexHasShortRuns(t *testing.T) {
	var x idIndex
	for id := range mem.RegionID(1 << 16) {
		x.add(&region{id: id + 1})
		if x.len()&(x.len()-1) != 0 {
			continue
		}
		longest, run := 0, 0
		for _, g := range x.places {
			if run++; g == nil {
				run = 0
			}
			longest = max(longest, run)
		}
		if longest > 16 {
			t.Errorf("of %d regions in sequence, %d lie in one run", x.len(), longest)
		}
	}
}
