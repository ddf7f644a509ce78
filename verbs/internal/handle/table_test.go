package handle

import (
	"errors"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/verbs"
)

func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int]
		model := map[uint64]int{}
		var given []uint64 // every handle ever, removed or not
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
				if v, ok := table.Get(h); ok != held || ok && v != want {
					t.Fatalf("Get(%#x) = %d, %v; want %d, %v", h, v, ok, want, held)
				}
			},
			"deregister": func(t *rapid.T) {
				h := someHandle(t, given)
				want, held := model[h]
				failing := rapid.Bool().Draw(t, "fails")
				released := false
				err := table.Deregister("release", verbs.Region{Handle: h}, func(v int) error {
					released = true
					if v != want {
						t.Fatalf("Deregister(%#x) releases %d, want %d", h, v, want)
					}
					if _, ok := table.Get(h); ok {
						t.Fatalf("%#x is found while it is being deregistered", h)
					}
					if err := table.Deregister("again", verbs.Region{Handle: h}, nil); !errors.Is(err, verbs.ErrUnknownRegion) {
						t.Fatalf("a second Deregister(%#x) meanwhile: %v", h, err)
					}
					if failing {
						return verbs.ErrBusy
					}
					return nil
				})
				switch {
				case released != held:
					t.Fatalf("Deregister(%#x) releases: %v, want %v", h, released, held)
				case !held && !errors.Is(err, verbs.ErrUnknownRegion),
					held && failing && err != verbs.ErrBusy, held && !failing && err != nil:
					t.Fatalf("Deregister(%#x) of a region that is held: %v, and fails: %v: %v", h, held, failing, err)
				case held && !failing:
					delete(model, h)
				}
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
		if _, ok := table.Get(forged); ok {
			t.Errorf("forged handle %#x was accepted", forged)
		}
	}
	if _, ok := table.Get(h); !ok {
		t.Error("the real handle is gone")
	}
}

func TestCloseWaitsForCallsAndEndsLaterOnes(t *testing.T) {
	var table Table[int]
	h := table.Put(1)
	if err := table.Enter("first", mem.Range{}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- table.Close(func() error { return verbs.ErrBusy }) }()
	select {
	case <-closed:
		t.Fatal("closed during a call")
	case <-time.After(10 * time.Millisecond):
	}
	table.Leave()
	if err := <-closed; err != verbs.ErrBusy {
		t.Errorf("Close: %v", err)
	}
	if err := table.Enter("later", mem.Range{}); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("a call after Close: %v", err)
	}
	if err := table.Deregister("later", verbs.Region{Handle: h}, nil); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("Deregister after Close: %v", err)
	}
}
