package main

import (
	"fmt"

	"pinwheel/internal/tools/compare"
)

// judgeApp returns in one line what is wrong with an application on a stack, "" if nothing is.
func judgeApp(runs map[compare.Mode]appRun) string {
	for _, mode := range compare.Modes {
		run := runs[mode].Run
		switch {
		case run.Failed != "":
			return fmt.Sprintf("with %s: %s", mode, run.Failed)
		case run.PeakBytes == 0:
			return fmt.Sprintf("with %s: no memory was pinned, so it did not use the device", mode)
		}
		if where := firstDifference(runs[mode].Results, runs[compare.Cache].Results); where != "" {
			return fmt.Sprintf("with %s it computes something else than with %s: %s", mode, compare.Cache, where)
		}
	}
	switch own := runs[compare.Pinwheel].Run.Own; {
	case own == nil:
		return "no rank has written a report"
	case own.Faulted > 0 || own.Failed > 0:
		return fmt.Sprintf("%d uses failed, %d after a fault of ours", own.Failed, own.Faulted)
	}
	return ""
}

// managed says what Pinwheel did in an application.
func managed(runs map[compare.Mode]appRun) string {
	cache, under := runs[compare.Cache].Run, runs[compare.Pinwheel].Run
	own := under.Own
	if own.Uses == 0 {
		return fmt.Sprintf("nothing to manage: the transport copies its messages; %s pinned, %s with its cache",
			compare.Bytes(under.AvgPinnedBytes), compare.Bytes(cache.AvgPinnedBytes))
	}
	return fmt.Sprintf("%d uses: %d hits, %d late, %d released; holds %s; "+
		"%s pinned, %s with the transport's cache: saves %d %%",
		own.Uses, own.Hits, own.LateUses(), own.HelperDeregs, compare.Bytes(float64(own.AveragePinnedBytes)),
		compare.Bytes(under.AvgPinnedBytes), compare.Bytes(cache.AvgPinnedBytes),
		int(100*(1-under.AvgPinnedBytes/cache.AvgPinnedBytes)))
}
