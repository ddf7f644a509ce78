package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/lab/testbed/live/stack"
)

// little are settings of UCX's own memory, which is larger than ulimit -l often is.
var little = []string{
	"UCX_RC_VERBS_RX_QUEUE_LEN=128", "UCX_UD_VERBS_RX_QUEUE_LEN=128", "UCX_RC_VERBS_TX_QUEUE_LEN=128", "UCX_UD_VERBS_TX_QUEUE_LEN=128",
	"UCX_RC_VERBS_RX_BUFS_GROW=32", "UCX_UD_VERBS_RX_BUFS_GROW=32", "UCX_RC_VERBS_TX_BUFS_GROW=32", "UCX_UD_VERBS_TX_BUFS_GROW=32",
}

// Each rank sends from and receives into four buffers of 768 KiB, two at a time. All of them exceed ulimit -l: a job that
// leaves them registered fails, and goes on where a policy or a budget deregisters some. So Figures 3 and 11f of Li et al.
// (CF 2011) have it.
func TestJobsThatLeaveTooMuchPinnedFailAndOthersGoOn(t *testing.T) {
	device, under := withLimits(t, 5*time.Minute)
	s, err := stack.Named("openmpi-ucx")
	if err != nil {
		t.Fatal(err)
	}
	if why := s.Missing(device); why != "" {
		t.Skip(why)
	}
	program := filepath.Join(t.TempDir(), "phases")
	if err := s.Compile(program, "../../bench/live/programs/phases.c"); err != nil {
		t.Fatal(err)
	}
	enter := enterMemlock(t, "6291456")
	for _, c := range []struct {
		name   string
		policy string // "": the transport's cache
		fails  bool
	}{
		{"the transport's cache", "", true}, {"leave-pinned within a budget", "leave-pinned", false}, {"pinwheel", "pinwheel", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := stack.Job{Stack: s, Device: device, Ranks: ranks, Under: enter, Environ: little,
				Program: []string{program, "alltoall", "786432", "30", "100"}}
			if c.policy != "" {
				j.Under = append(slices.Clip(enter), under, "run", "--")
				j.Environ = append(slices.Clip(little), "PINWHEEL_POLICY="+c.policy, "PINWHEEL_BUDGET=1M")
			}
			res, err := j.Run(60 * time.Second)
			if err != nil || res.Late {
				t.Fatalf("%+v, %v", res, err)
			}
			if c.fails {
				if res.Status == 0 || !strings.Contains(res.Output, "no more memory may be pinned") {
					t.Errorf("it goes on beyond ulimit -l: %+v", res)
				}
				return
			}
			if res.Status != 0 || !strings.Contains(res.Output, "data right") {
				t.Errorf("%+v", res)
			}
		})
	}
}

// enterMemlock returns a command that runs its arguments with so many bytes of RLIMIT_MEMLOCK, and without the right to
// exceed it.
func enterMemlock(t *testing.T, bytes string) []string {
	t.Helper()
	enter := []string{"prlimit", "--memlock=" + bytes + ":" + bytes}
	if os.Geteuid() == 0 {
		enter = append([]string{"setpriv", "--inh-caps", "-ipc_lock", "--bounding-set", "-ipc_lock"}, enter...)
	}
	if out, err := exec.Command(enter[0], append(enter[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("needs to set RLIMIT_MEMLOCK: %v\n%s", err, out)
	}
	return enter
}
