package verbstest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

const goroutines = 4

// together runs f in several goroutines and waits for them.
func together(f func(i int)) {
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func (s *suite) concurrentDisjoint(t *testing.T) {
	p := s.provider(t)
	_, all := Map(t, goroutines*16*mem.PageSize)
	together(func(i int) {
		r := Part(all, uint64(i)*16*mem.PageSize, 16*mem.PageSize)
		for range 300 {
			g, err := p.Register(r, write)
			if err != nil {
				t.Errorf("Register: %v", err)
				return
			}
			if g.Range != r {
				t.Errorf("registered %v as %v", r, g.Range)
			}
			if err := p.Deregister(g); err != nil {
				t.Errorf("Deregister: %v", err)
			}
		}
	})
	wantUsage(t, p, 0)
}

func (s *suite) concurrentOverlapping(t *testing.T) {
	p := s.provider(t)
	const pages = 64
	_, all := Map(t, pages*mem.PageSize)
	together(func(i int) {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		var held []verbs.Region
		for range 500 {
			if len(held) == 8 || len(held) > 0 && rng.IntN(2) == 0 {
				k := rng.IntN(len(held))
				if err := p.Deregister(held[k]); err != nil {
					t.Errorf("Deregister: %v", err)
				}
				held[k] = held[len(held)-1]
				held = held[:len(held)-1]
				continue
			}
			from := rng.Uint64N(pages)
			to := from + 1 + rng.Uint64N(pages-from)
			g, err := p.Register(Part(all, from*mem.PageSize, (to-from)*mem.PageSize), write)
			if err != nil {
				t.Errorf("Register: %v", err)
				return
			}
			held = append(held, g)
		}
		for _, g := range held {
			if err := p.Deregister(g); err != nil {
				t.Errorf("Deregister: %v", err)
			}
		}
	})
	wantUsage(t, p, 0)
}

func (s *suite) deregisterRace(t *testing.T) {
	p := s.provider(t)
	_, r := Map(t, 4*mem.PageSize)
	for range 100 {
		g := register(t, p, r)
		var won atomic.Int64
		together(func(int) {
			switch err := p.Deregister(g); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, verbs.ErrUnknownRegion):
				t.Errorf("loser got %v, want ErrUnknownRegion", err)
			}
		})
		if won.Load() != 1 {
			t.Fatalf("%d of %d deregistrations of one region succeeded", won.Load(), goroutines)
		}
	}
	wantUsage(t, p, 0)
}

func (s *suite) closeRace(t *testing.T) {
	before := Pinned(t)
	_, r := Map(t, 16*mem.PageSize)
	for range 20 {
		p := s.open(t)
		var registered atomic.Int64
		together(func(i int) {
			for {
				if i == 0 && registered.Load() > 20 {
					if err := p.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				}
				g, err := p.Register(r, write)
				if err == nil {
					registered.Add(1)
					err = p.Deregister(g)
				}
				if errors.Is(err, verbs.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("before Close: %v", err)
					return
				}
			}
		})
		wantUsage(t, p, 0)
	}
	if after := Pinned(t); after != before {
		t.Errorf("VmPin+VmLck is %d bytes after Close, was %d", after, before)
	}
}
