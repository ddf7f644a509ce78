package handle

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int]
		model := map[uint64]int{}
		var given []uint64 // every handle ever, taken or not
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				next++
				h := table.Put(next)
				if _, twice := model[h]; twice || h == 0 {
					t.Fatalf("handle %#x given out twice or zero", h)
				}
				model[h] = next
				given = append(given, h)
			},
			"take": func(t *rapid.T) {
				if len(given) == 0 {
					t.Skip("nothing given out")
				}
				h := rapid.SampledFrom(given).Draw(t, "handle")
				want, held := model[h]
				if v, ok := table.Get(h); v != want || ok != held {
					t.Fatalf("Get(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
				if v, ok := table.Take(h); v != want || ok != held {
					t.Fatalf("Take(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
				delete(model, h)
			},
			"": func(t *rapid.T) {
				if got := table.All(); !maps.Equal(got, model) {
					t.Fatalf("holds %v, want %v", got, model)
				}
			},
		})
	})
}

func TestForgedHandlesAreUnknown(t *testing.T) {
	var table Table[int]
	h := table.Put(1)
	for _, forged := range []uint64{0, h &^ (1 << 32), h + 1, h + 1<<33, ^uint64(0)} {
		if _, ok := table.Take(forged); ok {
			t.Errorf("forged handle %#x was accepted", forged)
		}
	}
	if _, ok := table.Take(h); !ok {
		t.Error("the real handle is gone")
	}
}
