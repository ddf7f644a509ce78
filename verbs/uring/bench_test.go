package uring_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

// BenchmarkRegister registers and deregisters memory that is mapped in.
func BenchmarkRegister(b *testing.B) {
	for _, n := range []uint64{16 << 10, 1 << 20, 128 << 20} {
		b.Run(mem.FormatBytes(n), func(b *testing.B) { benchmarkRegister(b, n, 0) })
	}
}

// BenchmarkRegisterBeside does so while other regions are registered.
func BenchmarkRegisterBeside(b *testing.B) {
	for _, held := range []int{64, 4096} {
		b.Run(fmt.Sprint(held, " regions"), func(b *testing.B) { benchmarkRegister(b, 16<<10, held) })
	}
}

// BenchmarkRegisterBesideLarge does so while another thread registers 128 MiB
// over and over: what the number of rings is for. Look at the median.
func BenchmarkRegisterBesideLarge(b *testing.B) {
	for _, rings := range []int{1, 2} {
		b.Run(fmt.Sprint(rings, " rings"), func(b *testing.B) {
			p, err := uring.Open(uring.Options{Rings: rings})
			verbstest.Available(b, err)
			defer p.Close()
			verbstest.NeedPinned(b, p, 256<<20)
			_, large := verbstest.Map(b, 128<<20)
			_, small := verbstest.Map(b, 16<<10)
			var stop atomic.Bool
			var other sync.WaitGroup
			other.Go(func() {
				for !stop.Load() {
					if g, err := p.Register(large, write); err == nil {
						_ = p.Deregister(g)
					}
				}
			})
			var ns []int64
			for b.Loop() {
				start := time.Now()
				g := register(b, p, small)
				ns = append(ns, int64(time.Since(start)))
				if err := p.Deregister(g); err != nil {
					b.Fatal(err)
				}
			}
			stop.Store(true)
			other.Wait()
			slices.Sort(ns)
			b.ReportMetric(float64(ns[len(ns)/2]), "median-ns")
			b.ReportMetric(float64(ns[len(ns)*99/100]), "p99-ns")
		})
	}
}

// BenchmarkRegisterTogether has several threads register and deregister 32 MiB each, over and over. What they take of
// a processor tells what they lose to each other; elapsed time does only with as many idle processors.
func BenchmarkRegisterTogether(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(workers, " threads"), func(b *testing.B) {
			p, err := uring.Open(uring.Options{Rings: workers})
			verbstest.Available(b, err)
			defer p.Close()
			verbstest.Together(b, p, workers, 32<<20)
		})
	}
}

func benchmarkRegister(b *testing.B, n uint64, held int) {
	p, err := uring.Open(uring.Options{})
	verbstest.Available(b, err)
	defer p.Close()
	verbstest.NeedPinned(b, p, int64(n)+int64(held)*int64(mem.PageSize))
	_, r := verbstest.Map(b, n)
	for range held {
		register(b, p, verbstest.Part(r, 0, mem.PageSize))
	}
	register(b, p, r) // touches it
	for b.Loop() {
		g, err := p.Register(r, write)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Deregister(g); err != nil {
			b.Fatal(err)
		}
	}
}
