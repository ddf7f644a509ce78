package mem

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIndexAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index[int]
		type added struct {
			r     Range
			value int
		}
		var all []added
		last := 0
		draw := func(t *rapid.T) Range {
			start := Addr(rapid.Uint64Range(0, 1<<20).Draw(t, "start"))
			return Range{start, start + Addr(rapid.Uint64Range(1, 1<<rapid.IntRange(0, 44).Draw(t, "class")).Draw(t, "bytes"))}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				last++
				all = append(all, added{draw(t), last})
				x.Add(all[len(all)-1].r, last)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("it is empty")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				x.Remove(all[i].r, all[i].value)
				all = append(all[:i], all[i+1:]...)
				if len(all) == 0 && len(x.in) > 0 {
					t.Fatalf("%d lists are left", len(x.in))
				}
			},
			"": func(t *rapid.T) {
				r := draw(t)
				found := map[int]bool{}
				x.Overlapping(r, func(value int) { found[value] = true })
				for _, a := range all {
					if a.r.Overlaps(r) != found[a.value] {
						t.Errorf("%v: %v of %v is found: %v", r, a.value, a.r, found[a.value])
					}
					delete(found, a.value)
				}
				if len(found) > 0 {
					t.Errorf("%v: %v are found, which are not there", r, found)
				}
			},
		})
	})
}

// What is done for one range must not grow with their number.
func TestALookIntoAnIndexDependsOnWhatOverlaps(t *testing.T) {
	var x Index[int]
	const n = 10000
	at := func(i int) Range {
		start := Addr(i) << 21
		return Range{start, start + 3*Addr(PageSize)}
	}
	for i := range n {
		x.Add(at(i), i)
	}
	for _, list := range x.in {
		if len(list) > 2 {
			t.Fatalf("%d ranges that don't overlap are in one list", len(list))
		}
	}
	looked := 0
	x.Overlapping(Range{0, 1 << 47}, func(int) { looked++ })
	if looked < n || looked > 2*n {
		t.Errorf("of all %d found %d", n, looked)
	}
}
