package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"pinwheel/trace"
)

// TestTune prints what matters when a predictor or scheduler is tuned:
//
//	PINWHEEL_TUNE='../results/traces/*.pwt' PINWHEEL_POLICIES=paper,pinwheel go test ./replay -run TestTune -v
func TestTune(t *testing.T) {
	pattern := os.Getenv("PINWHEEL_TUNE")
	if pattern == "" {
		t.Skip("prints figures, tests nothing: set PINWHEEL_TUNE to a pattern of .pwt files")
	}
	o := Options{Policies: []string{LeavePinned, OnDemand, Oracle}}
	o.Timeline = Timeline(os.Getenv("PINWHEEL_TIMELINE"))
	if p := os.Getenv("PINWHEEL_POLICIES"); p != "" {
		o.Policies = strings.Split(p, ",")
	}
	files, _ := filepath.Glob(pattern)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "trace\tpolicy\tavg MB\tpeak MB\tcapt avg\tcapt peak\tlate%\twaits%\tneeds\tfirst\thelper\twasted\tstall ms\tslowdown\terr.5\terr5\trun s\tev/s\t")
	for _, f := range files {
		file, err := trace.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		rs, err := Compare(context.Background(), o, file)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		took := time.Since(start)
		v := func(p *float64) string {
			if p == nil {
				return "-"
			}
			return fmt.Sprintf("%.4f", *p)
		}
		for _, r := range rs {
			if r.Rank != AllRanks {
				continue
			}
			after := float64(max(1, r.Needs-r.FirstRegs)) / 100
			fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%s\t%s\t%.3f\t%.3f\t%d\t%d\t%d\t%d\t%.2f\t%s\t%s\t%s\t%.3f\t%.2fM\t\n", r.Trace, r.Policy, r.AvgPinnedBytes/1e6, float64(r.PeakPinnedBytes)/1e6,
				v(r.CapturedAvg), v(r.CapturedPeak), float64(r.LateRegs)/after, float64(r.LateWaits)/after, r.Needs, r.FirstRegs, r.HelperRegs, r.WastedRegs,
				float64(r.StallNs)/1e6, v(r.Slowdown), v(r.Err05), v(r.Err5), float64(r.RunNs)/1e9, float64(r.TraceEvents)*float64(len(o.Policies)+2)/took.Seconds()/1e6)
		}
		file.Close()
	}
	w.Flush()
}
