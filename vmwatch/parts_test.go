package vmwatch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

func anyRange(t *rapid.T, label string, limit uint64) mem.Range {
	start := rapid.Uint64Range(0, limit).Draw(t, label)
	return mem.Range{Start: mem.Addr(start), End: mem.Addr(start + rapid.Uint64Range(1, limit).Draw(t, label+" bytes"))}
}

func TestInterestIsSetExactlyWhileSomebodyWatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := new(interest)
		var watched []mem.Range
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				// Wide enough to come round.
				r := anyRange(t, "range", 20<<GranuleBits)
				r.Start += mem.Addr(rapid.SampledFrom([]uint64{0, GranuleCount << GranuleBits}).Draw(t, "lap"))
				r.End = r.Start + mem.Addr(rapid.Uint64Range(1, 5<<GranuleBits).Draw(t, "length"))
				i.add(r)
				watched = append(watched, r)
			},
			"remove": func(t *rapid.T) {
				if len(watched) == 0 {
					t.Skip()
				}
				k := rapid.IntRange(0, len(watched)-1).Draw(t, "which")
				i.remove(watched[k])
				watched = append(watched[:k], watched[k+1:]...)
			},
			"": func(t *rapid.T) {
				want := map[uint64]bool{}
				for _, r := range watched {
					for g := uint64(r.Start) >> GranuleBits; g <= (uint64(r.End)-1)>>GranuleBits; g++ {
						want[g%GranuleCount] = true
					}
				}
				for g := range uint64(64) {
					if set := i[g] != 0; set != want[g] {
						t.Fatalf("granule %d: %d watch it, want any: %v; watched %v", g, i[g], want[g], watched)
					}
				}
			},
		})
	})
}

func TestMapsAreReadTheSameWithAndWithoutQuery(t *testing.T) {
	s, pages := subject(t)
	f, free, err := scratch(4 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	free()
	for _, c := range []struct {
		name string
		r    mem.Range
		want bool
	}{
		{"anonymous", s.Range, true},
		{"part of it", pages(3, 5), true},
		{"unmapped", f, false},
		{"more than is mapped", mem.Range{Start: s.Range.Start, End: s.Range.End + 1<<40}, false},
	} {
		if got := privateAnonymous(c.r); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
		queried, err := mappingsIn(c.r)
		text, failed := mappingsInText(c.r)
		same := func(a, b machine.Mapping) bool {
			return a.Range == b.Range && a.Shared == b.Shared && a.Inode == b.Inode
		}
		if err != nil || failed != nil || !slices.EqualFunc(queried, text, same) {
			t.Errorf("%s: %v, %v; from the text %v, %v", c.name, queried, err, text, failed)
		}
	}
}

func TestFramesThatAppearWhileRegisteringAreNotTrusted(t *testing.T) {
	w := openOrExplain(t, "pfn")
	r, free, err := scratch(4 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	token, verify, err := w.Watch(r)
	if err != nil || !verify {
		t.Fatal(verify, err)
	}
	for _, want := range []error{mem.ErrChanged, nil} {
		w.Pinning(token)
		for at := r.Start; at < r.End; at += mem.Addr(mem.PageSize) {
			store(at, 1) // as a registration brings pages in
		}
		if err := w.Pinned(token); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
		if w.Unchanged(token) != (want == nil) {
			t.Errorf("after %v: unchanged is %v", want, w.Unchanged(token))
		}
	}
}
