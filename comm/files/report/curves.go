package report

import (
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/pipe/virtual"
	"pinwheel/mem"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// serve says how a transfer of n bytes is done.
type serve func(n int64) virtual.Transfer

// mapped registers parts of the page cache.
func mapped(pages int64, pipes int, r virtual.Registration) serve {
	return shaped(pipe.Shape{Source: pipe.Map, ChunkBytes: pages * int64(mem.PageSize), Depth: pipes}, r)
}

func shaped(s pipe.Shape, r virtual.Registration) serve {
	return func(n int64) virtual.Transfer { return virtual.Transfer{Bytes: n, Shape: s, Registration: r} }
}

// kept finds everything registered.
func kept(f serve) serve {
	return func(n int64) virtual.Transfer {
		t := f(n)
		t.Kept = true
		return t
	}
}

// by is a strategy of ours, whose registrations are made by the process. If hot, they are kept from an earlier transfer
// of the file, where the policy keeps any.
func by(s pipe.Strategy, hot bool) serve {
	if hot {
		s.CopyBelow = 0
	}
	return func(n int64) virtual.Transfer {
		t := virtual.Transfer{Bytes: n, Shape: s.For(n, mem.Unlimited), Registration: virtual.HotI07User}
		t.Kept = t.Shape.Source == pipe.Copy || hot && s.Name == pipe.Auto.Name
		return t
	}
}

// The ways to serve of the paper, with its numbers: sendfile registers in the kernel, by the thread that posts.
var (
	wireOnly  = kept(shaped(pipe.Dynamic.Shape, virtual.Registration{}))
	oneBuffer = kept(shaped(pipe.Shape{Source: pipe.Copy, Depth: 1}, virtual.Registration{}))
	static    = by(pipe.Static, false)
	dynamic   = by(pipe.Dynamic, false)
	pipelined = by(pipe.Pipelined, false)
	sendfile  = mapped(256, 6, virtual.HotI07Kernel)
)

// sizes are those of the files.
func sizes() (ns []int64) {
	for n := int64(4 * kib); n <= 64*mib; n *= 2 {
		ns = append(ns, n)
	}
	return ns
}

// throughput returns MiB/s of one transfer that has the computer for itself.
func throughput(f serve, n int64) float64 { return together(f, n, 1).mibPerSec }

// load is what some clients get together.
type load struct {
	mibPerSec  float64
	processors float64 // busy, of the computer's
}

// together has clients that each get a file of n bytes.
func together(f serve, n int64, clients int) load {
	transfers := make([]virtual.Transfer, clients)
	for i := range transfers {
		transfers[i] = f(n)
	}
	results, err := virtual.Run(virtual.HotI07, transfers)
	if err != nil {
		panic(err) // the shapes are those of this package
	}
	var endNs, processorNs float64
	for _, r := range results {
		endNs, processorNs = max(endNs, r.EndNs), processorNs+r.ProcessorNs
	}
	return load{float64(n) * float64(clients) / mib / endNs * 1e9, processorNs / endNs}
}
