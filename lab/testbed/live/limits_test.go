package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
)

// withLimits begins a test of jobs that lack something, which has a time of its own, and returns the software device and
// the path of pinwheel.
func withLimits(t *testing.T, most time.Duration) (device stack.Device, under string) {
	t.Helper()
	if os.Getenv("LIVE_TEST_LIMITS") == "" {
		t.Skip("make test-live")
	}
	testwait.BoundAt(t, most)
	device, err := stack.OpenDevice("../../../out/softverbs")
	if err != nil {
		t.Skip(err)
	}
	if under, err = filepath.Abs(pinwheel); err != nil {
		t.Fatal(err)
	}
	return device, under
}

// Jobs end well, with the right data, where they get little memory or little processor time.
func TestJobsLiveWithLimits(t *testing.T) {
	device, under := withLimits(t, 8*time.Minute)
	for _, s := range stack.All {
		t.Run(s.Name, func(t *testing.T) {
			if why := s.Missing(device); why != "" {
				t.Skip(why)
			}
			program := filepath.Join(t.TempDir(), "collectives")
			if err := s.Compile(program, filepath.Join(sources, "collectives.c")); err != nil {
				t.Fatal(err)
			}
			run := func(t *testing.T, enter, environ []string) string {
				res, err := stack.Job{
					Stack: s, Device: device, Ranks: ranks, Program: []string{program, "3", "262144"},
					Under: append(enter, under, "run", "--"), Environ: environ,
				}.Run(100 * time.Second)
				if err != nil || res.Status != 0 || res.Late || !strings.Contains(res.Output, "data right") {
					t.Errorf("%+v, %v", res, err)
				}
				return res.Output
			}
			// The transport's own pools alone are larger than that.
			t.Run("node budget", func(t *testing.T) {
				said := run(t, nil, []string{"PINWHEEL_NODE_BUDGET=2M"})
				if n := strings.Count(said, "the node is over its budget"); n < 1 || n > ranks {
					t.Errorf("%d of %d ranks say that the budget is exceeded:\n%s", n, ranks, said)
				}
			})
			t.Run("processor quota", func(t *testing.T) {
				if said := run(t, enterQuota(t), nil); strings.Contains(said, "pinwheel: ") {
					t.Errorf("said\n%s", said)
				}
			})
		})
	}
}

// enterQuota makes a control group that has a tenth of a processor, and returns a command that runs its arguments
// in it. The group is removed after the test. Where that is not possible, the test is skipped.
func enterQuota(t *testing.T) []string {
	t.Helper()
	const top = "/sys/fs/cgroup"
	name := fmt.Sprintf("pinwheel-live-%d", os.Getpid())
	dir, quota := filepath.Join(top, "cpu", name),
		map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"}
	if _, err := os.Stat(filepath.Join(top, "cgroup.controllers")); err == nil {
		_ = os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+cpu"), 0) // else there is no cpu.max
		dir, quota = filepath.Join(top, name), map[string]string{"cpu.max": "10000 100000"}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs to make a control group: %v", err)
	}
	t.Cleanup(func() { // Open MPI's daemon may end after mpirun
		testwait.Until(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
	})
	for file, value := range quota {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Skipf("needs the cpu controller in a control group of its own: %v", err)
		}
	}
	return []string{"sh", "-c", "echo $$ >" + strconv.Quote(filepath.Join(dir, "cgroup.procs")) + ` && exec "$@"`, "sh"}
}
