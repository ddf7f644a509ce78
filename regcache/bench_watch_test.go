package regcache

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs/mlock"
	"pinwheel/vmwatch"
)

// BenchmarkUseBesideMappings is acquire and release of four buffers of 256 KiB in turn, in a program that maps a page
// and writes to it between two uses, and the share of uses that registered again. Run it as root and as another user:
// "service" is pinwheel watchd.
func BenchmarkUseBesideMappings(b *testing.B) {
	for _, watch := range []struct {
		name string
		o    vmwatch.Options
	}{
		{"bpf", vmwatch.Options{Mechanism: "bpf"}},
		{"service", vmwatch.Options{Mechanism: "bpf", Service: vmwatch.ServicePath}},
		{"uffd", vmwatch.Options{Mechanism: "uffd"}},
	} {
		b.Run(watch.name, func(b *testing.B) {
			w, err := vmwatch.Open(watch.o)
			if err != nil {
				b.Skip(err)
			}
			if watch.o.Service != "" && !w.Report().Service {
				b.Skip("no service: pinwheel watchd")
			}
			p, err := mlock.Open()
			if err != nil {
				b.Skip(err)
			}
			c, err := New(p, Options{Watcher: w})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			defer c.Close()
			buffers := mapBuffers(b)
			late, took := 0, time.Duration(0)
			for i := 0; b.Loop(); i++ {
				mapPage(b)
				began := time.Now()
				ref, outcome, err := c.Acquire(buffers[i%len(buffers)], both)
				if err != nil {
					b.Fatal(err)
				}
				c.Release(ref)
				took += time.Since(began)
				if outcome.IsLate() {
					late++
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/use")
			b.ReportMetric(100*float64(late)/float64(b.N), "late%")
		})
	}
}

func mapBuffers(b *testing.B) (all [4]mem.Range) {
	for i := range all {
		m, err := unix.Mmap(-1, 0, 256<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = unix.Munmap(m) })
		all[i] = mem.RangeOf(m)
	}
	return all
}

// mapPage maps a page, writes to it and unmaps it.
func mapPage(b *testing.B) {
	m, err := unix.Mmap(-1, 0, int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		b.Fatal(err)
	}
	m[0] = 1
	if err := unix.Munmap(m); err != nil {
		b.Fatal(err)
	}
}
