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
	"pinwheel/internal/testwait"
)

// What the kernel would not write must not stop a program either.
func FuzzLimits(f *testing.F) {
	f.Add("0::/a/b\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "150000 100000\n", "usage_usec 5\n")
	f.Add("8:cpu,cpuacct:/a\n", "30 24 0:26 /a / rw - cgroup cgroup rw,cpu,cpuacct\n", "max", "nr_throttled x")
	f.Add("0::relative\n", "30 24 0:26 / x rw - cgroup2 cgroup2 rw\n", "", "")
	f.Fuzz(func(t *testing.T, groups, mounts, limit, stat string) {
		testwait.BoundAt(t, 10*time.Second)
		root := fstest.MapFS{
			"proc/self/cgroup": {Data: []byte(groups)}, "proc/self/mountinfo": {Data: []byte(mounts)},
			"sys/fs/cgroup/cpu.max": {Data: []byte(limit)}, "sys/fs/cgroup/cpu.stat": {Data: []byte(stat)},
			"sys/fs/cgroup/a/memory.max": {Data: []byte(limit)},
		}
		quota := NewCPUQuota(root)
		for range 2 {
			if l, left := quota.Limit(), quota.Left(time.Now()); l.Processors < 0 || left < 0 || left > l.Processors {
				t.Errorf("%+v, %g left", l, left)
			}
		}
		if bytes, _ := MemoryLimit(root); bytes < 0 {
			t.Errorf("%d bytes", bytes)
		}
		CPUSet(root)
	})
}

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
