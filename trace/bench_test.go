package trace

import (
	"errors"
	"io"
	"path/filepath"
	"testing"
)

// BenchmarkRead reads one rank of real NAS traces: LU has the most records,
// MG the most call sites. The goal is 5 million records per second, so that
// decoding is a small part of a replay.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"lu.B.4", "mg.C.4"} {
		b.Run(name, func(b *testing.B) {
			f := open(b, filepath.Join("..", "results", "traces", name+".pwt"))
			for b.Loop() {
				rr, err := f.Rank(1)
				for r := (Record{}); err == nil; {
					err = rr.Next(&r)
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(f.Records(1))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	recs := sequence(100_000)
	path := filepath.Join(b.TempDir(), "t.pwt")
	for b.Loop() {
		write(b, path, [][]Record{recs}, 3)
	}
	b.ReportMetric(float64(len(recs))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}
