package cgroup

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/datadriven"

	"pinwheel/internal/testtree"
)

// TestLimitsOfKnownLayouts prints the limits of a machine whose files are the input of the command "limits". The
// command "later" adds files of half a second later, and prints what was left of the quotas meanwhile.
func TestLimitsOfKnownLayouts(t *testing.T) {
	var root fstest.MapFS
	var quota *CPUQuota
	var now time.Time
	datadriven.RunTest(t, "testdata/layouts", func(t *testing.T, d *datadriven.TestData) string {
		tree := testtree.Parse(t, d.Input)
		if d.Cmd == "later" {
			maps.Copy(root, tree)
			now = now.Add(time.Second / 2)
			return fmt.Sprintf("%g processors left\n", quota.Left(now))
		}
		root, now = tree, time.Unix(1e9, 0)
		quota = NewCPUQuota(root)
		var b strings.Builder
		if bytes, file := MemoryLimit(root); file != "" {
			fmt.Fprintf(&b, "%d bytes (%s)\n", bytes, file)
		}
		l := quota.Limit()
		if !math.IsInf(l.Processors, 1) {
			fmt.Fprintf(&b, "%g processors (%s), throttled in %g %% of its periods\n", l.Processors, l.File, 100*l.Throttled)
		}
		if left := quota.Left(now); left != l.Processors {
			t.Errorf("%s: %g left at first, of %g", d.Pos, left, l.Processors)
		}
		if b.Len() == 0 {
			return "no limits\n"
		}
		return b.String()
	})
}
