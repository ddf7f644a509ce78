package handle

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int]
		model, claimed := map[uint64]int{}, map[uint64]bool{}
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
			"get": func(t *rapid.T) {
				h := someHandle(t, given)
				want, held := model[h]
				held = held && !claimed[h]
				if v, ok := table.Get(h); ok != held || ok && v != want {
					t.Fatalf("Get(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
			},
			"claim": func(t *rapid.T) {
				h := someHandle(t, given)
				want, held := model[h]
				held = held && !claimed[h]
				if v, ok := table.Claim(h); ok != held || ok && v != want {
					t.Fatalf("Claim(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
				claimed[h] = claimed[h] || held
			},
			"restore": func(t *rapid.T) {
				h := someHandle(t, given)
				table.Restore(h)
				delete(claimed, h)
			},
			"take": func(t *rapid.T) {
				h := someHandle(t, given)
				want, held := model[h]
				if v, ok := table.Take(h); v != want || ok != held {
					t.Fatalf("Take(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
				delete(model, h)
				delete(claimed, h)
			},
			"": func(t *rapid.T) {
				if got := table.All(); !maps.Equal(got, model) {
					t.Fatalf("holds %v, want %v", got, model)
				}
			},
		})
	})
}

// someHandle draws one that was given out at some time.
func someHandle(t *rapid.T, given []uint64) uint64 {
	if len(given) == 0 {
		t.Skip("nothing given out")
	}
	return rapid.SampledFrom(given).Draw(t, "handle")
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
