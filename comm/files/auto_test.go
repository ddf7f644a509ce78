package files

import (
	"fmt"
	"slices"
	"testing"

	"pinwheel/comm/files/pipe"
	"pinwheel/mem"
)

// BenchmarkAuto sends files that are in the page cache and were not sent before, over RDMA by each strategy, in turn. It
// tells how many times faster auto is than the best of the four others, by the medians.
func BenchmarkAuto(b *testing.B) {
	w := overRDMA(b)
	const most = 64 << 20 // 64 MiB
	s := w.sending(b, most)
	registrars := map[string]*Registrar{}
	for _, strategy := range pipe.Strategies() {
		registrars[strategy.Name] = w.registrar(b, s, RegistrarOptions{Strategy: strategy})
	}
	for n := int64(1); n <= most; n *= 2 {
		if n > 1 && n < 1<<10 {
			continue
		}
		b.Run(mem.FormatBytes(uint64(n)), func(b *testing.B) {
			f, ctx := fileOf(b, int(n)), b.Context()
			times := map[string][]float64{}
			for b.Loop() {
				for name, r := range registrars {
					if err := f.Chmod(0o600); err != nil { // another stamp: the file is mapped anew
						b.Fatal(err)
					}
					st, err := Send(ctx, s.dst, 0, f, 0, n, SendOptions{Registrar: r})
					if err != nil || st.Way != ByRDMA {
						b.Fatal(st, err)
					}
					times[name] = append(times[name], float64(st.Times.Wall))
				}
			}
			best, auto := 0.0, 0.0
			for name, all := range times {
				slices.Sort(all)
				speed := 1 / all[len(all)/2]
				if b.ReportMetric(1e-3/speed, fmt.Sprintf("us-%s", name)); name == pipe.Auto.Name {
					auto = speed
				} else {
					best = max(best, speed)
				}
			}
			b.ReportMetric(auto/best, "auto/best")
		})
	}
}
