package mpishim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pinwheel/internal/node"
	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
)

func TestNodeBudgetIsSharedByItsRanks(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	run := func(environ ...string) report.Rank {
		// 16 buffers of 64 KiB, in a job of its own: other tests run at the same time
		status, said := play(t, dir,
			append(environ, "SLURM_JOB_ID="+t.Name(), "PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS="+file), "path", "16", "20")
		if status != 0 {
			t.Fatalf("status %d: %s", status, said)
		}
		return readReport(t, file)
	}
	const node = 3 << 20 // 1 MiB of it goes to what the transport registers itself, by rank
	if r := run("PINWHEEL_NODE_BUDGET=3M", "OMPI_COMM_WORLD_LOCAL_SIZE=1"); r.PeakPinnedBytes < 1<<20 ||
		r.Late != 0 && !verified(r) {
		t.Errorf("alone: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	if r := run("PINWHEEL_NODE_BUDGET=3M", "OMPI_COMM_WORLD_LOCAL_SIZE=4"); r.PeakPinnedBytes > node/4 || r.Late == 0 {
		t.Errorf("one of four: %d bytes pinned of %d, %d late", r.PeakPinnedBytes, node/4, r.Late)
	}
}

// A transport that knows nothing of Pinwheel ends the program if its registrations fail.
func TestTransportIsNeverRefusedByTheNodeBudget(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	const rounds = 4
	status, said := play(t, dir,
		[]string{"PINWHEEL_NODE_BUDGET=32K", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PINWHEEL_STATS=" + file},
		"path", "16", fmt.Sprint(rounds)) // buffers of 64 KiB
	if status != 0 || strings.Count(said, "the node is over its budget") != 1 {
		t.Errorf("status %d: %s", status, said)
	}
	if r := readReport(t, file); r.Uses != r.Demand.Uses || r.Uses+r.Plain < rounds*256 {
		t.Errorf("%d uses managed, %d of them on demand, %d plain; want none in the cache and at least %d", r.Uses, r.Demand.Uses,
			r.Plain, rounds*256)
	}
}

// On-demand paging pins nothing, however much is registered.
func TestOnDemandPagingCountsAgainstNoBudget(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, dir, []string{
		"STANDIN_ON_DEMAND=1", "PINWHEEL_NODE_BUDGET=3M", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "SLURM_JOB_ID=" + t.Name(),
		"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file,
	}, "path", "16", "20")
	if status != 0 || strings.Contains(said, "over its budget") {
		t.Errorf("status %d: %s", status, said)
	}
	if r := readReport(t, file); r.PeakPinnedBytes < 1<<20 {
		t.Errorf("%d bytes are managed beside 100 GiB that pin nothing", r.PeakPinnedBytes)
	}
}

// What a registration adds to what the process has pinned is what its end takes away, and no more.
func TestPlainRegistrationsGiveBackWhatTheyCounted(t *testing.T) {
	if status, said := play(t, theStage(t), []string{"LD_PRELOAD=", "PINWHEEL_LOG=off"}, "charges"); status != 0 || said != "" {
		t.Errorf("status %d: %s", status, said)
	}
}

// Another rank, which is this test, leaves its part to whoever needs it.
func TestRankUsesWhatOthersLeaveOfTheNodeBudget(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	job := strconv.Itoa(os.Getpid())
	run := func() report.Rank {
		status, said := play(t, dir, []string{
			"PINWHEEL_NODE_BUDGET=6M", "SLURM_JOB_ID=" + job, "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file,
		}, "path", "64", "20") // 64 buffers of 64 KiB, and 1 MiB of the transport's own
		if status != 0 {
			t.Fatalf("status %d: %s", status, said)
		}
		return readReport(t, file)
	}
	if r := run(); r.PeakPinnedBytes > 2<<20 || r.Late == 0 {
		t.Errorf("alone, one of two: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	other, err := node.Join(node.Options{Job: "slurm-" + job, Rank: 1, BudgetBytes: 6 << 20, Ranks: 2,
		Warn: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Shrink(0)
	if r := run(); r.PeakPinnedBytes < 4<<20 || r.Late != 0 && !verified(r) {
		t.Errorf("with all of the budget: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	testwait.Until(t, "the other gets what the first has left", func() bool { return other.Grow(6<<20) == 6<<20 })
}
