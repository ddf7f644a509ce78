package placement

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/node"
	"pinwheel/internal/testwait"
)

// peerEnv makes the test binary another process of the job that it names. It claims processor 1 with
// 1 GiB registered, and then waits to be killed. With "allowed" it prints the processors that
// its helper may use.
const peerEnv = "PINWHEEL_TEST_HELPER_PEER"

func init() {
	job := os.Getenv(peerEnv)
	switch job {
	case "":
		return
	case "allowed":
		fmt.Println(AllowedCPUs())
		os.Exit(0)
	}
	member, err := node.Join(node.Options{Job: job})
	if err == nil {
		table := claimTable{member}
		err = table.update(func(all []Claim) []Claim { return append(all, Claim{Owner: table.owner(), CPU: 1, Bytes: 1 << 30}) })
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	testwait.Ready()
}

// startPeer starts a peer. kill ends it with SIGKILL.
func startPeer(t *testing.T, job string) (pid int, kill func()) {
	t.Helper()
	return testwait.Peer(t, peerEnv+"="+job)
}

var jobs atomic.Int64

// jobOf names a job of a test's own.
func jobOf(*testing.T) string { return fmt.Sprintf("helper-test-%d-%d", os.Getpid(), jobs.Inc()) }

func TestClaimsAreThoseOfAllJobsAndOfTheLiving(t *testing.T) {
	job := jobOf(t)
	mine := func() []Claim {
		t.Helper()
		all, err := Claims()
		if err != nil && !strings.Contains(err.Error(), "node:") {
			t.Fatal(err)
		}
		return all
	}
	pid, kill := startPeer(t, job)
	of := func(c Claim) bool { return int(c.Owner.PID) == pid }
	if all := mine(); !slices.ContainsFunc(all, func(c Claim) bool { return of(c) && c.CPU == 1 && c.Bytes == 1<<30 }) {
		t.Errorf("claims %+v, want that of %d", all, pid)
	}
	kill()
	if all := mine(); slices.ContainsFunc(all, of) {
		t.Errorf("claims %+v with the dead process %d", all, pid)
	}
}

func TestProcessWithoutJobIsAlone(t *testing.T) {
	err := claimTable{}.update(func(all []Claim) []Claim {
		if len(all) > 0 {
			t.Errorf("claims %+v", all)
		}
		return []Claim{{CPU: 1}}
	})
	if err != nil {
		t.Error(err)
	}
}
