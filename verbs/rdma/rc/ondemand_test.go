//go:build linux && cgo

package rc_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/verbstest"
)

// BenchmarkOnDemandPaging sets the kernel's own way to pin nothing beside registrations: what a region takes to be made and
// given back, what transfers from it to another one of its kind take, and what the kernel counts as pinned. After a change of the
// mapping, a pinned region has to be made anew, which counts.
func BenchmarkOnDemandPaging(b *testing.B) {
	from, to := pair(b)
	for _, n := range []uint64{64 << 10, 1 << 20, 4 << 20} {
		for _, c := range []struct {
			name   string
			access verbs.Access
		}{{"pinned", both}, {"on-demand", both | verbs.AccessOnDemand}} {
			b.Run(fmt.Sprintf("%s/%s", c.name, mem.FormatBytes(n)), func(b *testing.B) {
				benchmarkRegion(b, from, to, n, c.access)
			})
		}
	}
}

func benchmarkRegion(b *testing.B, from, to end, n uint64, access verbs.Access) {
	here, hereRange := verbstest.Map(b, n)
	there, thereRange := verbstest.Map(b, n)
	register := func(p verbs.Provider, r mem.Range) verbs.Region {
		g, err := p.Register(r, access)
		for errors.Is(err, verbs.ErrBusy) { // a signal of the Go runtime interrupts what the kernel does for on-demand
			g, err = p.Register(r, access)
		}
		if errors.Is(err, verbs.ErrUnsupported) {
			b.Skip(err)
		}
		if err != nil {
			b.Fatal(err)
		}
		return g
	}
	deregister := func(p verbs.Provider, g verbs.Region) {
		if err := p.Deregister(g); err != nil {
			b.Fatal(err)
		}
	}
	fill(here, 1)
	target := register(to.p, thereRange)
	defer deregister(to.p, target)
	before := verbstest.Pinned(b)
	spent := map[string]time.Duration{}
	timed := func(what string, do func()) {
		began := time.Now()
		do()
		spent[what] += time.Since(began)
	}
	var pinned int64
	seed := uint64(1)
	for b.Loop() {
		var g verbs.Region
		write := func() {
			must(b, from.Conn, from.Write(1, rc.Local{Range: hereRange, LKey: g.LKey},
				rc.Remote{Addr: uint64(thereRange.Start), RKey: target.RKey}))
		}
		timed("register", func() { g = register(from.p, hereRange) })
		timed("first-write", write)
		timed("write", write)
		pinned = verbstest.Pinned(b) - before
		remap(b, here)
		seed++
		fill(here, seed)
		timed("write-after-remap", func() {
			if access&verbs.AccessOnDemand == 0 {
				deregister(from.p, g)
				g = register(from.p, hereRange)
			}
			write()
		})
		if !bytes.Equal(here, there) {
			b.Fatal("what was sent is not what the buffer holds since its mapping has changed")
		}
		timed("deregister", func() { deregister(from.p, g) })
	}
	for what, d := range spent {
		b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), what+"-ns")
	}
	b.ReportMetric(float64(pinned), "pinned-B")
	b.ReportMetric(0, "ns/op") // of all that, and of filling and comparing
}
