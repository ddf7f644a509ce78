package mpishim

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/report"
)

// onDemand serves each use on demand, until an idle core is found.
var onDemand = []string{"PINWHEEL_COST=100%"}

// fillNode keeps all processors busy until the test ends: else the helper may find an idle one before the first use.
func fillNode(t *testing.T) {
	t.Helper()
	var stop atomic.Bool
	t.Cleanup(func() { stop.Store(true) })
	for range runtime.NumCPU() {
		go func() {
			for !stop.Load() {
			}
		}()
	}
}

// Until it is known whether a core is idle, and if none is, threads register and deregister by themselves.
func TestOnAFullNodeUsesAreServedOnDemand(t *testing.T) {
	fillNode(t)
	dir := theStage(t)
	for _, wait := range []string{"y", "n"} {
		t.Run("waits: "+wait, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			const buffers, rounds = 5, 20
			// The stand-in fails ibv_dealloc_pd if a registration is left, and aborts if one goes twice.
			status, said := play(t, dir, append(onDemand, "PINWHEEL_STATS="+file, "PINWHEEL_WATCH_WAIT="+wait), "path",
				fmt.Sprint(buffers), fmt.Sprint(rounds))
			if status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			r := readReport(t, file)
			const messages = rounds * 256
			if r.Uses != messages || r.Plain != 1 {
				t.Errorf("%d uses managed, %d plain; want %d and 1", r.Uses, r.Plain, messages)
			}
			if sum := r.Demand.Uses + r.Hits + r.Waited + r.First + r.Late; sum != r.Uses || r.Demand.Uses == 0 {
				t.Errorf("%d on demand, %d hits, %d waited, %d first, %d late: %d of %d uses",
					r.Demand.Uses, r.Hits, r.Waited, r.First, r.Late, sum, r.Uses)
			}
			checkCosts(t, &r)
		})
	}
}

// checkCosts looks at the times of a run that has used buffers of 64 KiB, one at a time.
func checkCosts(t *testing.T, r *report.Rank) {
	t.Helper()
	d := &r.Demand
	spared := r.Cost.DemandNs - d.LookNs
	if spared <= 0 || spared > d.RegisterNs || float64(d.RegisterNs) > 1e9*r.Seconds {
		t.Errorf("registrations took %d ns, of which a cache would have spared %d, in %g s", d.RegisterNs, spared, r.Seconds)
	}
	if d.Bytes > 64<<10 || r.AveragePinnedBytes < d.Bytes {
		t.Errorf("%d bytes were registered on demand on average, %d in all", d.Bytes, r.AveragePinnedBytes)
	}
	if !strings.Contains(r.Environment[0], "PINWHEEL_COST") || r.Cost.Share != 1 {
		t.Errorf("a cost of %g, set by %q", r.Cost.Share, r.Environment)
	}
}

// What may be spent is bounded: the advance of 2 s, and what is earned meanwhile. It pays for looks, too, as long as the
// program waits for its watch. The rest is kept by the cache.
func TestOnDemandKeepsToItsBudget(t *testing.T) {
	fillNode(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_COST=0.05%", "PINWHEEL_STATS=" + file}, "path", "5", "200")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	r := readReport(t, file)
	if r.Demand.Uses == 0 || r.Demand.Uses > r.Uses/2 || r.Hits < r.Uses/2 {
		t.Errorf("%d of %d uses on demand, %d hits", r.Demand.Uses, r.Uses, r.Hits)
	}
}

// Without a budget, nothing is served on demand.
func TestNothingIsOnDemandAtNoCost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_COST=0", "PINWHEEL_STATS=" + file}, "path", "5", "20")
	if r := readReport(t, file); status != 0 || r.Demand.Uses != 0 || r.First != 5 {
		t.Errorf("status %d: %s\n%d uses on demand, %d first", status, said, r.Demand.Uses, r.First)
	}
}

// What comes to a call site once is registered on demand after 8 misses (PW_FRESH_MISSES), though the helper has a
// processor. Of memory that comes again only the first use is, and some until one of it is recognized.
func TestMemoryThatComesOnceIsRegisteredOnDemand(t *testing.T) {
	for _, c := range []struct {
		environ              string
		rounds, uses, demand int
	}{
		{"PINWHEEL_POLICY=pinwheel", 1, 300, 300 - 8},
		{"PINWHEEL_POLICY=pinwheel", 4, 4 * 300, 300 - 8},
		{"PINWHEEL_POLICY=pinwheel", 4, 4 * 8, 0},
		{"PINWHEEL_POLICY=pinwheel", 5, 5 * 3000, 3000 - 8}, // many more than the table has
		{"PINWHEEL_POLICY=leave-pinned", 1, 300, 0},
		{"PINWHEEL_COST=0", 1, 300, 0},
		{"PINWHEEL_IDLE_POLICY=off", 1, 300, 0},
	} {
		buffers := c.uses / c.rounds
		t.Run(fmt.Sprintf("%s, %d buffers, %d times", c.environ, buffers, c.rounds), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stats.json")
			status, said := play(t, theStage(t), []string{c.environ, "PINWHEEL_HELPER_CPU=0", "PINWHEEL_STATS=" + file},
				"path", fmt.Sprint(buffers), fmt.Sprint(c.rounds), "1", fmt.Sprint(buffers))
			most := uint64(c.demand + (c.rounds-1)*c.demand/10)
			if r := readReport(t, file); status != 0 || r.Uses != uint64(c.uses) || r.Demand.Uses != r.Demand.Fresh ||
				r.Demand.Uses < uint64(c.demand) || r.Demand.Uses > most {
				t.Errorf("status %d: %s\n%d of %d uses on demand, want %d of %d", status, said, r.Demand.Uses, r.Uses, c.demand, c.uses)
			}
		})
	}
}

func TestProgramsLiveAsWithoutUsOnDemand(t *testing.T) {
	dir := theStage(t)
	for how, want := range map[string]int{
		"": 0, "status": 42, "threads": 0, "signals": 0, "fork": 0, "process": 0, "after": 0, "rereg": 0, "domains": 0,
		"windows": 0, "renew": 0, "exit": 9, "_exit": 10, "abort": 128 + int(syscall.SIGABRT),
	} {
		t.Run("life "+how, func(t *testing.T) {
			t.Parallel()
			if status, said := play(t, dir, onDemand, "life", how); status != want || said != "" && want == 0 {
				t.Errorf("status %d, want %d: %s", status, want, said)
			}
		})
	}
}
