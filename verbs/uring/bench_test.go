package uring_test

import (
	"fmt"
	"testing"

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
