package mem_test

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

func TestCountsAgainstOneCounterAPage(t *testing.T) {
	const pages = 24
	rapid.Check(t, func(t *rapid.T) {
		var c mem.Counts
		var model [pages]int
		var held []mem.Range
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				from := rapid.IntRange(0, pages-1).Draw(t, "from")
				to := rapid.IntRange(from+1, pages).Draw(t, "to")
				r := mem.Range{Start: mem.Addr(from), End: mem.Addr(to)}
				added := map[mem.Addr]bool{}
				for _, a := range c.Add(r) {
					for p := a.Start; p < a.End; p++ {
						added[p] = true
					}
				}
				held = append(held, r)
				for p := r.Start; p < r.End; p++ {
					if added[p] != (model[p] == 0) {
						t.Fatalf("page %d added: %v, with %d references", p, added[p], model[p])
					}
					model[p]++
				}
			},
			"remove": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("nothing held")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				r := held[i]
				held = append(held[:i], held[i+1:]...)
				unused := map[mem.Addr]bool{}
				for _, u := range c.Remove(r) {
					for p := u.Start; p < u.End; p++ {
						unused[p] = true
					}
				}
				for p := mem.Addr(0); p < pages; p++ {
					if r.Start <= p && p < r.End {
						model[p]--
					}
					if want := r.Start <= p && p < r.End && model[p] == 0; unused[p] != want {
						t.Fatalf("page %d unused: %v, want %v", p, unused[p], want)
					}
				}
			},
			"": func(t *rapid.T) {
				var got [pages]int
				runs, parts, prev, refs := 0, 0, mem.Range{}, 0
				for r, n := range c.All() {
					if r.Empty() || n <= 0 || prev.End > r.Start || prev.End == r.Start && refs == n {
						t.Fatalf("run %v of %d references after %v of %d", r, n, prev, refs)
					}
					if runs == 0 || prev.End < r.Start {
						parts++
					}
					runs, prev, refs = runs+1, r, n
					for p := r.Start; p < r.End; p++ {
						got[p] = n
					}
				}
				var covered uint64
				for _, n := range model {
					if n > 0 {
						covered++
					}
				}
				if got != model || c.Bytes() != covered || c.Runs() != parts || runs > 2*len(held) {
					t.Fatalf("got %v, %d covered in %d parts; want %v, %d in %d", got, c.Bytes(), c.Runs(), model, covered, parts)
				}
			},
		})
	})
}
