package main

import (
	"strings"
	"testing"

	"pinwheel/internal/machine"
	"pinwheel/lab/kit"
)

func TestTableHasMediansAndTheSpeedUp(t *testing.T) {
	var all runs
	all.Head = kit.Head{Version: "v", Date: "2026-01-02", Machine: machine.Machine{Processor: "P", Processors: 2, Kernel: "K"}}
	for _, s := range []int64{4, 1, 9} {
		all.Lines = append(all.Lines, row{Device: "uring", Bytes: 1 << 30, Way: "untouched", WallNs: s * 1e9, CPUNs: s * 2e9, Others: float64(s)},
			row{Device: "uring", Bytes: 1 << 30, Way: "all threads", WallNs: s * 5e8, CPUNs: s * 2e9, Threads: 2, Others: .5},
			row{Device: "uring", Bytes: 1 << 30, Way: "touched", WallNs: 1e9, CPUNs: 1e9},
			row{Device: "uring", Bytes: 1 << 30, Way: "1 thread", WallNs: s * 1e9, CPUNs: s * 1e9})
	}
	all.Lines = append(all.Lines, row{Device: "rdma", Huge: true, Bytes: 1 << 32, Way: "touched", WallNs: 1e6, CPUNs: 2e6})
	got := all.markdown()
	for _, want := range []string{"| io_uring | 4 KiB | 1.0 GiB | 1.000 (1.000) | 4.000 (8.000) | 4.000 (4.000) | 2.000 (8.000) | 2.00 | 1.78 |",
		"| RDMA | THP | 4.0 GiB | 0.001 (0.002) | | | | | |", "at most 9.00", "Pinwheel v, 2026-01-02. P, 2 processors, Linux K."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A row of each way, small.
func TestEveryWayMeasures(t *testing.T) {
	for _, w := range ways {
		for _, huge := range []bool{false, true} {
			r, err := twice(row{Device: "sim", Huge: huge, Bytes: 4 << 20, Way: w.name}, w)
			if err != nil || r.WallNs <= 0 || r.Way != w.name || (r.PrefaultNs > 0) != strings.Contains(w.name, "thread") {
				t.Errorf("%s: %+v, %v", w.name, r, err)
			}
		}
	}
}
