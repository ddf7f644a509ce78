package replay

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

func pageRange(t *rapid.T, pages int) mem.Range {
	a := rapid.IntRange(0, pages-1).Draw(t, "first page")
	b := rapid.IntRange(a+1, pages).Draw(t, "end page")
	return mem.Range{Start: mem.Addr(a) * mem.Addr(mem.PageSize), End: mem.Addr(b) * mem.Addr(mem.PageSize)}
}

func TestFirstUseIsWhatNoEarlierRangeContains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s FirstUses
		var before []mem.Range
		for range rapid.IntRange(0, 20).Draw(t, "needs") {
			r := pageRange(t, 6)
			if rapid.IntRange(0, 3).Draw(t, "forget") == 0 { // what is left of a range counts as used
				s.Forget(r)
				var left []mem.Range
				for _, b := range before {
					rest := mem.NewSet(b)
					rest.Remove(r)
					left = slices.AppendSeq(left, rest.All())
				}
				before = left
				continue
			}
			want := true
			for _, b := range before {
				want = want && !b.Contains(r)
			}
			if got := s.IsFirst(r); got != want {
				t.Fatalf("%v after %v: first %v, want %v", r, before, got, want)
			}
			before = append(before, r)
		}
	})
}

func TestEventQueueGivesTheTurnToTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "actors")
		a := newEventQueue(n)
		at := make([]int64, n)
		for i := range at {
			at[i] = never
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "actor")
			at[i] = rapid.OneOf(rapid.Int64Range(0, 9), rapid.Just(int64(never))).Draw(t, "at")
			a.set(int32(i), at[i])
			want := 0
			for j := range at {
				if at[j] < at[want] {
					want = j
				}
			}
			if got, when := a.first(); int(got) != want || when != at[want] {
				t.Fatalf("turn of %d at %d, want %d of %v", got, when, want, at)
			}
		}
	})
}
