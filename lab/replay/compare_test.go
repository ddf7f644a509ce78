package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay/replaytest"
	"pinwheel/trace"
)

// nasTrace opens one of the traces that the project keeps.
func nasTrace(t testing.TB, name string) *trace.File {
	t.Helper()
	f, err := trace.Open(filepath.Join("..", "..", "results", "traces", name+".pwt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	testwait.SkipUnderRace(t, "TestSharedCoresGiveTheSameBytesOnAnyNumberOfProcessors has several threads, too")
	f := nasTrace(t, "bt.C.4")
	var runs [2]string
	for i, parallel := range []int{1, 4} {
		rs, err := Compare(t.Context(), Options{Parallel: parallel, Nodes: [][]int{{0, 1}, {2, 3}}}, f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(rs)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			b = fmt.Append(b, r.Pinned, r.Errors)
		}
		runs[i] = string(b)
	}
	if runs[0] != runs[1] {
		t.Fatal("two runs differ")
	}
}

func TestJSONHasTheNamesOfTheDesign(t *testing.T) {
	rs, err := Compare(t.Context(), Options{Policies: []string{Paper}}, nasTrace(t, "ft.B.4"))
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) != 5 || rs[4].Rank != AllRanks {
		t.Fatalf("%d results, want one for each of 4 ranks and one for all", len(rs))
	}
	b, err := json.Marshal(rs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`trace rank policy provider mode peak_pinned_bytes avg_pinned_bytes first_regs late_regs helper_regs
		helper_deregs wasted_regs stall_ns run_ns slowdown err_0_5 err_5 captured_avg captured_peak helper_cpu_ns`) {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("%s is missing in %s", name, b)
		}
	}
}

// Paper 004, section 6.2: 31.0 % of the peak of FT.B.4; alltoall uses two of
// its three arrays at a time.
func TestPaperSavesAThirdOfThePeakOfFT(t *testing.T) {
	rs, err := Compare(t.Context(), Options{Policies: []string{LeavePinned, Paper}}, nasTrace(t, "ft.B.4"))
	if err != nil {
		t.Fatal(err)
	}
	base, paper := rs[0], rs[5]
	saved := 1 - float64(paper.PeakPinnedBytes)/float64(base.PeakPinnedBytes)
	if saved < 0.30 || saved > 0.34 {
		t.Fatalf("paper saves %.1f %% of the peak, want 30 to 34", 100*saved)
	}
}

func TestOnNAS(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	for _, name := range []string{"cg.C.4", "is.C.4", "mg.C.4", "ft.C.16", "lu.D.4", "sp.D.4", "bt.C.4"} {
		t.Run(name, func(t *testing.T) {
			rs, err := Compare(t.Context(), Options{}, nasTrace(t, name))
			if err != nil {
				t.Fatal(err)
			}
			by := map[string]Result{}
			for _, r := range rs {
				if r.Rank == AllRanks {
					by[r.Policy] = r
				}
			}
			base, oracle := by[LeavePinned], by[Oracle]
			if base.LateRegs != 0 || base.HelperRegs != 0 || base.FirstRegs == 0 {
				t.Errorf("leave-pinned: %d late, %d by the helper, %d first", base.LateRegs, base.HelperRegs, base.FirstRegs)
			}
			for p, r := range by {
				if r.Needs != base.Needs {
					t.Errorf("%s: %d needs, leave-pinned has %d", p, r.Needs, base.Needs)
				}
				if p == Bounce || p == Pipeline || p == LRU {
					continue // they do without whole buffers, so they may pin less than the bound
				}
				if r.AvgPinnedBytes < oracle.AvgPinnedBytes && r.Slowdown != nil && *r.Slowdown <= 1 {
					t.Errorf("%s pins %.0f bytes on average without being slower, below the bound of %.0f", p, r.AvgPinnedBytes, oracle.AvgPinnedBytes)
				}
				if r.AvgPinnedBytes > base.AvgPinnedBytes*1.0001 {
					t.Errorf("%s pins %.0f bytes on average, leave-pinned %.0f", p, r.AvgPinnedBytes, base.AvgPinnedBytes)
				}
			}
			if d := by[OnDemand]; d.FirstRegs+d.LateRegs < d.Needs*9/10 {
				t.Errorf("on-demand registered %d times for %d needs", d.FirstRegs+d.LateRegs, d.Needs)
			}
		})
	}
}

func TestNodesSeeWhatTheirRanksPinAtOneTime(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	o := Options{Policies: []string{LeavePinned}, Nodes: [][]int{{0, 1, 2, 3}}}
	f := nasTrace(t, "ft.C.16")
	rs, err := Compare(t.Context(), o, f)
	if err != nil {
		t.Fatal(err)
	}
	var node Result
	var sum, separate int64
	for _, r := range rs {
		if r.Node != nil {
			node = r
		} else if r.Rank >= 0 && r.Rank < 4 {
			sum += r.PeakPinnedBytes
		}
	}
	o.Nodes = nil
	if rs, err = Compare(t.Context(), o, f); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs[:4] {
		separate += r.PeakPinnedBytes
	}
	if node.PeakPinnedBytes == 0 || node.PeakPinnedBytes > sum {
		t.Errorf("node peak %d, sum of its ranks' peaks %d", node.PeakPinnedBytes, sum)
	}
	if sum >= separate {
		t.Errorf("4 ranks pin %d bytes on one node, %d on four: what they send each other needs no registration", sum, separate)
	}
}

func TestCancelledCompareStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, Options{}, nasTrace(t, "lu.B.4")); err != context.Canceled {
		t.Fatalf("got %v, want context.Canceled", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	f := nasTrace(t, "ft.B.4")
	for want, o := range map[string]Options{
		`unknown policy "magic"`:   {Policies: []string{"magic"}},
		`unknown timeline "lunar"`: {Timeline: "lunar"},
		`rank 4 is named twice or`: {Nodes: [][]int{{0, 4}}},
		`rank 1 is named twice or`: {Nodes: [][]int{{0, 1}, {1}}},
	} {
		if _, err := Compare(t.Context(), o, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// liveAfter returns how much more of the heap was live at the end of a
// trace of n iterations than before it.
func liveAfter(t *testing.T, n int) int64 {
	one := "irecv 1 32K a req=1; isend 1 32K b req=2; wait 1 2; alltoall 64K c d; cpu 50us; "
	two := "irecv 0 32K a req=1; isend 0 32K b req=2; wait 1 2; alltoall 64K c d; cpu 50us; "
	f := replaytest.Trace(t, "0: "+strings.Repeat(one, n)+"\n1: "+strings.Repeat(two, n))
	o := Options{}
	o.EnsureDefaults()
	e, err := newEngine(&o, recorded{f})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.install(Last, 0); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if err := e.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(e)
	if err := e.close(); err != nil {
		t.Fatal(err)
	}
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func TestMemoryDoesNotGrowWithTheLengthOfTheTrace(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	short, long := liveAfter(t, 500), liveAfter(t, 8000)
	if long > short+(256<<10) { // 256 KiB: frames of the reader, call sites by line
		t.Fatalf("%d bytes live after a short trace, %d after one 16 times as long", short, long)
	}
}

// BenchmarkVirtual reports events per second of processor time, which is what
// one core does, also on a machine that is not idle.
func BenchmarkVirtual(b *testing.B) {
	for _, name := range []string{"lu.B.4", "bt.B.4", "mg.C.4"} {
		for _, policy := range []string{LeavePinned, OnDemand, Oracle, Paper, Pinwheel} {
			b.Run(name+"/"+policy, func(b *testing.B) {
				f := nasTrace(b, name)
				o := Options{}
				o.EnsureDefaults()
				var events int64
				begin := cpuTime(b)
				for b.Loop() {
					res, err := pass(b.Context(), &o, recorded{f}, policy, &passResult{lateNs: 1_000_000, logs: make([]useLog, 4)})
					if err != nil {
						b.Fatal(err)
					}
					events += res.results[len(res.results)-1].TraceEvents
				}
				b.ReportMetric(float64(events)/(cpuTime(b)-begin).Seconds(), "events/cpu-s")
			})
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
