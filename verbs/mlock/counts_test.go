package mlock

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

func TestCountsAgainstOneCounterAPage(t *testing.T) {
	const pages = 24
	rapid.Check(t, func(t *rapid.T) {
		var c counts
		var model [pages]int
		var held []mem.Range
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				from := rapid.IntRange(0, pages-1).Draw(t, "from")
				to := rapid.IntRange(from+1, pages).Draw(t, "to")
				r := mem.Range{Start: mem.Addr(from), End: mem.Addr(to)}
				c.add(r)
				held = append(held, r)
				for p := r.Start; p < r.End; p++ {
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
				for _, u := range c.remove(r) {
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
				for i, x := range c.runs {
					if x.Empty() || x.refs <= 0 {
						t.Fatalf("run %+v", x)
					}
					if i > 0 {
						if prev := c.runs[i-1]; prev.End > x.Start || prev.End == x.Start && prev.refs == x.refs {
							t.Fatalf("runs %+v and %+v", prev, x)
						}
					}
					for p := x.Start; p < x.End; p++ {
						got[p] = x.refs
					}
				}
				var covered uint64
				for _, n := range model {
					if n > 0 {
						covered++
					}
				}
				if got != model || c.bytes != covered || len(c.runs) > 2*len(held) {
					t.Fatalf("got %v, %d covered in %d runs; want %v, %d", got, c.bytes, len(c.runs), model, covered)
				}
			},
		})
	})
}
