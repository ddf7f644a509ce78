package mem

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSetAgainstAMapOfAddresses compares every operation with a map that holds the addresses
// one by one.
func TestSetAgainstAMapOfAddresses(t *testing.T) {
	const addresses = 32
	between := rapid.Custom(func(t *rapid.T) Range {
		start := rapid.IntRange(0, addresses).Draw(t, "start")
		end := rapid.IntRange(0, addresses).Draw(t, "end") // before start: an empty range
		return Range{Addr(start), Addr(end)}
	})
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		model := map[Addr]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := between.Draw(t, "range")
				s.Add(r)
				for a := r.Start; a < r.End; a++ {
					model[a] = true
				}
			},
			"remove": func(t *rapid.T) {
				r := between.Draw(t, "range")
				s.Remove(r)
				for a := r.Start; a < r.End; a++ {
					delete(model, a)
				}
			},
			"contains": func(t *rapid.T) {
				r := between.Draw(t, "range")
				want := !r.Empty()
				for a := r.Start; a < r.End; a++ {
					want = want && model[a]
				}
				if got := s.Contains(r); got != want {
					t.Fatalf("%v contains %v: %v, want %v", s, r, got, want)
				}
			},
			"within": func(t *rapid.T) {
				r := between.Draw(t, "range")
				var want Range
				for a := r.Start; a < r.End; a++ {
					if !model[a] {
						continue
					}
					if want.Empty() {
						want.Start = a
					}
					want.End = a + 1
				}
				if got := s.Within(r); got != want {
					t.Fatalf("%v within %v: %v, want %v", s, r, got, want)
				}
			},
			"": func(t *rapid.T) {
				held := map[Addr]bool{}
				var last Range
				for r := range s.All() {
					if r.Empty() || len(held) > 0 && r.Start <= last.End {
						t.Fatalf("%v follows %v", r, last)
					}
					for a := r.Start; a < r.End; a++ {
						held[a] = true
					}
					last = r
				}
				if len(held) != len(model) || s.Bytes() != uint64(len(model)) {
					t.Fatalf("%v holds %d addresses, counts %d, want %d", s, len(held), s.Bytes(), len(model))
				}
				for a := range model {
					if !held[a] {
						t.Fatalf("%v lacks %#x", s, uintptr(a))
					}
				}
			},
		})
	})
}

func TestSetReachesTheEndOfTheAddressSpace(t *testing.T) {
	all := Range{0, ^Addr(0)}
	s := NewSet(all)
	s.Remove(Range{0x1000, 0x2000})
	if got, want := slices.Collect(s.All()), []Range{{0, 0x1000}, {0x2000, all.End}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.Remove(all)
	if s.Bytes() != 0 {
		t.Errorf("%v is left", s)
	}
}

func BenchmarkSetContains(b *testing.B) {
	var s Set
	for i := range Addr(1024) {
		s.Add(Range{i * 0x2000, i*0x2000 + 0x1000})
	}
	for i := Addr(0); b.Loop(); i++ {
		at := i % 1024 * 0x2000
		if !s.Contains(Range{at, at + 0x1000}) {
			b.Fatal("lost")
		}
	}
}
