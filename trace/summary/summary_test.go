package summary

import (
	"math"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/trace"
)

func TestQuantilesAreExactToATenthOfAPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, 1<<62).Draw(t, "v")
		var d distribution
		d.add(v)
		got := d.quantiles(0.1, 0.5, 0.9)
		for _, q := range got {
			if math.Abs(float64(q-v)) > 0.001*float64(v) {
				t.Fatalf("%d came back as %d", v, q)
			}
		}
		w := rapid.Int64Range(0, 1<<62).Draw(t, "w")
		if (bucketOf(uint64(v)) < bucketOf(uint64(w))) && v > w {
			t.Fatalf("buckets of %d and %d are out of order", v, w)
		}
	})
	var d distribution
	for v := range int64(100) {
		d.add(v)
	}
	if q := d.quantiles(0.1, 0.5, 0.9); q[0] != 9 || q[1] != 49 || q[2] != 89 {
		t.Errorf("quantiles of 0..99: %v", q)
	}
}

// A rank with two overlapping buffers from one call site, a period of 1000 ns
// (every fourth 2000 ns), and a nonblocking receive.
func TestSummaryCountsRegionsSitesAndPeriods(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pwt")
	w, err := trace.Create(path, trace.Header{Program: "p", Ranks: 1})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := w.Rank(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := rw.DefineComm(0, 0, []int32{0}); err != nil {
		t.Fatal(err)
	}
	site, err := rw.Stack([]uint64{0xabc, 0x12})
	if err != nil {
		t.Fatal(err)
	}
	page := mem.PageSize
	add := func(r trace.Record) {
		t.Helper()
		r.Stack = site
		if err := rw.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	now := int64(0)
	for i := range 40 {
		now += 1000
		if i%20 == 19 {
			now += 1000
		}
		call := trace.Record{Op: trace.OpAllreduce, StartNs: now, EndNs: now + 100,
			StartCPUNs: int64(i) * 500, EndCPUNs: int64(i)*500 + 50}
		call.Dir, call.Addr, call.Bytes = trace.DirRead, mem.Addr(16*page), 2*page
		add(call)
		call.Dir, call.Addr, call.Bytes = trace.DirWrite, mem.Addr(17*page), 2*page
		add(call)
		call.Addr, call.Bytes = mem.Addr(64*page), 8 // below the threshold
		add(call)
	}
	add(trace.Record{Op: trace.OpIrecv, Dir: trace.DirWrite, Addr: 4096, Bytes: 4 * page, Req: 1, StartNs: 60_000,
		EndNs: 60_100, StartCPUNs: 30_000, EndCPUNs: 30_000})
	add(trace.Record{Op: trace.OpWait, Req: 1, StartNs: 99_000, EndNs: 100_000, StartCPUNs: 30_000, EndCPUNs: 31_000})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := Read(f, 0, Options{ThresholdBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if got.Records != 122 || got.WallNs != 100_000 || got.CPUNs != 31_000 || got.Comms != 1 {
		t.Errorf("rank: %+v", got)
	}
	if want := 3*page +
		(mem.Range{Start: 4096, End: 4096 + mem.Addr(4*page)}).PageAligned().Len(); got.CoveredBytes != want {
		t.Errorf("regions cover %d bytes together, want %d", got.CoveredBytes, want)
	}
	if len(got.Regions) != 3 || got.Regions[0].Bytes != 4*page || math.Abs(got.Regions[0].UsedShare-0.4) > 1e-9 {
		t.Fatalf("nonblocking region: %+v", got.Regions)
	}
	g := got.Regions[1]
	if g.Uses != 40 || g.Sites != 1 || g.Period.N != 39 || math.Abs(float64(g.Period.MedianNs)-1000) > 1 ||
		g.Period.Jitter > 0.01 || math.Abs(float64(g.CPUPeriod.MedianNs)-500) > 1 {
		t.Errorf("periodic region: %+v", g)
	}
	if len(got.Sites) != 2 || got.Sites[1].Stack != "abc;12" || got.Sites[1].Op != "allreduce" ||
		got.Sites[1].Regions != 2 || got.Sites[1].Uses != 80 {
		t.Errorf("sites: %+v", got.Sites)
	}
	if len(got.Ops) != 3 || got.Ops[0].Op != "irecv" || got.Ops[2].Op != "allreduce" || got.Ops[2].MinBytes != 8 ||
		got.Ops[2].MaxBytes != 2*page {
		t.Errorf("ops: %+v", got.Ops)
	}
}
