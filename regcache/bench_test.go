package regcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs/sim"
)

// benchCache returns a cache with n registered regions of 64 KiB, a page
// apart, and their numbers in random order.
func benchCache(b testing.TB, n int, o Options) (*Cache, []uint32) {
	c, err := New(sim.New(sim.Options{}), o)
	if err != nil {
		b.Fatal(err)
	}
	order := make([]uint32, n)
	for i, k := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		order[k] = uint32(i)
		ref, _, err := c.Acquire(span(uint64(i)*17, 16), both)
		if err != nil {
			b.Fatal(err)
		}
		c.Release(ref)
	}
	return c, order
}

// chase is dependent get and put: the next address waits for the last result.
func chase(f *Local, order []uint32, skip uint64, i, n int) (last int) {
	var dep mem.Addr
	for range n {
		at := base + mem.Addr(uint64(order[i])*17*mem.PageSize+skip)
		if i++; i == len(order) {
			i = 0
		}
		r := mem.Range{Start: at + dep, End: at + mem.Addr(16*mem.PageSize-2*skip)}
		ref, _, err := f.Acquire(r, both)
		if err != nil {
			panic(err)
		}
		dep = mem.Addr(ref.RKey() >> 31) // always 0
		f.Release(ref)
	}
	return i
}

func BenchmarkHit(b *testing.B) {
	for _, n := range []int{1, 64, 1024, 8192, 65536} {
		b.Run(fmt.Sprintf("regions=%d", n), func(b *testing.B) {
			c, order := benchCache(b, n, Options{KnownRegions: 1 << 17})
			defer c.Close()
			f, err := c.Thread()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = chase(f, order, 0, i, 1000)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/hit")
		})
	}
}

// BenchmarkHitShared is the hit of callers without a Local.
func BenchmarkHitShared(b *testing.B) {
	c, order := benchCache(b, 1024, Options{})
	defer c.Close()
	i := 0
	for b.Loop() {
		ref, _, err := c.Acquire(span(uint64(order[i])*17, 16), both)
		if err != nil {
			b.Fatal(err)
		}
		c.Release(ref)
		if i++; i == len(order) {
			i = 0
		}
	}
}

// BenchmarkHitContained asks for pages 4 to 12 of 16.
func BenchmarkHitContained(b *testing.B) {
	c, order := benchCache(b, 1024, Options{})
	defer c.Close()
	f, err := c.Thread()
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i = chase(f, order, 4*mem.PageSize, i, 1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/hit")
}

// BenchmarkHelperCycle is one deregistration and registration by the helper
// with a provider that costs nothing.
func BenchmarkHelperCycle(b *testing.B) {
	for _, confined := range []bool{true, false} {
		b.Run(fmt.Sprintf("confined=%v", confined), func(b *testing.B) {
			c, _ := benchCache(b, 1024, Options{Confined: confined})
			defer c.Close()
			b.ReportAllocs()
			id := mem.RegionID(1)
			for b.Loop() {
				if c.Deregister(id) != nil || c.Register(id) != nil {
					b.Fatal("helper call failed")
				}
				id = id%1024 + 1
			}
		})
	}
}

// BenchmarkMiss is a request for memory never seen before, with a provider
// that costs little.
func BenchmarkMiss(b *testing.B) {
	const n = 8192
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		c, err := New(newMortal(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		f, err := c.Thread()
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for i := range uint64(n) {
			ref, _, err := f.Acquire(span(17*i, 16), both)
			if err != nil {
				b.Fatal(err)
			}
			f.Release(ref)
		}
		b.StopTimer()
		f.Close()
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/miss")
}

// BenchmarkInvalidate forgets and releases 8192 regions at once.
func BenchmarkInvalidate(b *testing.B) {
	const n = 8192
	for b.Loop() {
		b.StopTimer()
		c, _ := benchCache(b, n, Options{})
		b.StartTimer()
		if err := c.Invalidate(span(0, 17*n)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/region")
}
