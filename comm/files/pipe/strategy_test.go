package pipe_test

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/comm/files/pipe"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

func TestNumbersFitTheTransferAndItsBudget(t *testing.T) {
	for _, c := range []struct {
		strategy  pipe.Strategy
		n, budget int64
		want      pipe.Shape
	}{
		{pipe.Static, 1 << 30, mem.Unlimited, pipe.Static.Shape},
		{pipe.Dynamic, 5000, mem.Unlimited, pipe.Shape{Source: pipe.Map, ChunkBytes: 5000, Depth: 1}},
		{pipe.Dynamic, 1 << 30, 16 << 20, pipe.Shape{Source: pipe.Map, ChunkBytes: 16 << 20, Depth: 1}},
		{pipe.Sendfile, 1 << 30, 64 << 20, pipe.Sendfile.Shape},
		{pipe.Sendfile, 1 << 30, 1 << 20, pipe.Shape{Source: pipe.Map, ChunkBytes: 168 << 10, Depth: 6, Ahead: 4}},
		{pipe.Sendfile, 1 << 30, 128 << 10, pipe.Shape{Source: pipe.Map, ChunkBytes: 64 << 10, Depth: 2, Ahead: 2}},
		{pipe.Auto, 4096, mem.Unlimited, pipe.Static.Shape},
		{pipe.Auto, 1 << 20, mem.Unlimited, pipe.Sendfile.Shape},
		{pipe.Auto, 63 << 20, mem.Unlimited, pipe.Sendfile.Shape},
		{pipe.Auto, 64 << 20, mem.Unlimited, pipe.Shape{Source: pipe.Map, ChunkBytes: 2 << 20, Depth: 3, Ahead: 3}},
		{pipe.Auto, 1 << 30, mem.Unlimited, pipe.Shape{Source: pipe.Map, ChunkBytes: 2 << 20, Depth: 3, Ahead: 3}},
		{pipe.Auto, 1 << 30, 1 << 20, pipe.Shape{Source: pipe.Map, ChunkBytes: 340 << 10, Depth: 3, Ahead: 3}},
	} {
		if got := c.strategy.For(c.n, c.budget); got != c.want {
			t.Errorf("%s, %d bytes within %d: %+v, want %+v", c.strategy.Name, c.n, c.budget, got, c.want)
		}
	}
}

// Larger chunks are fewer: the client needs no larger window, and no more is registered.
func TestLongTransfersHaveNoMoreUnderWay(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(pipe.Strategies()).Draw(t, "strategy")
		if s.Shape.ChunkBytes == 0 {
			return // the whole transfer is one chunk
		}
		n := rapid.Int64Range(0, 1<<40).Draw(t, "bytes")
		shape := s.For(n, mem.Unlimited)
		if got, most := shape.ChunkBytes*int64(shape.Depth), s.Shape.ChunkBytes*int64(s.Shape.Depth); got > most {
			t.Fatalf("%+v has %d bytes under way, not %d", shape, got, most)
		}
	})
}

func TestNumbersAreNeverOverBudget(t *testing.T) {
	testwait.Bound(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(pipe.Strategies()).Draw(t, "strategy")
		n, budget := rapid.Int64Range(0, 1<<40).Draw(t, "bytes"), rapid.Int64Range(0, 1<<34).Draw(t, "budget")
		shape := s.For(n, budget)
		least := pipe.Static.Shape.ChunkBytes // one slot of a ring is what any transfer may have
		if bytes := shape.ChunkBytes * int64(shape.Depth); bytes > max(budget, least) {
			t.Fatalf("%+v has %d bytes", shape, bytes)
		}
		if _, err := pipe.New(n, shape); err != nil {
			t.Fatal(err)
		}
	})
}
