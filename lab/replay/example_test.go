package replay_test

import (
	"context"
	"fmt"
	"log"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// What registering around every transfer costs FT, and how little memory
// would do if the future were known.
func ExampleCompare() {
	file, err := trace.Open("../../results/traces/ft.B.4.pwt")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	o := replay.Options{Policies: []string{replay.LeavePinned, replay.OnDemand, replay.Oracle}}
	results, err := replay.Compare(context.Background(), o, file)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		if r.Rank == replay.AllRanks {
			fmt.Printf("%-12s peak %s, average %s, run time %.3f of leave-pinned\n", r.Policy,
				mem.FormatBytes(uint64(r.PeakPinnedBytes)), mem.FormatBytes(uint64(r.AvgPinnedBytes)), *r.Slowdown)
		}
	}
	// Output:
	// leave-pinned peak 1.1 GiB, average 1.0 GiB, run time 1.000 of leave-pinned
	// on-demand    peak 768.0 MiB, average 60.9 MiB, run time 1.054 of leave-pinned
	// oracle       peak 768.0 MiB, average 45.8 MiB, run time 0.996 of leave-pinned
}
