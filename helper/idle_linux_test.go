package helper

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// allowedUnder returns what AllowedCPUs returns in a process with the given
// affinity.
func allowedUnder(t *testing.T, cpus []int) string {
	t.Helper()
	result := make(chan string)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its affinity
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			result <- err.Error()
			return
		}
		cmd := testwait.Command(t, os.Args[0], "-test.run=^$") // inherits the affinity
		cmd.Env = append(os.Environ(), peerEnv+"=:allowed")
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = fmt.Append(out, err)
		}
		result <- strings.TrimSpace(string(out))
	}()
	return <-result
}

func TestHelperOfBoundRankMayUseTheCpuset(t *testing.T) {
	all, err := AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Skip("this process may use one processor only: nothing to tell apart")
	}
	// The cpuset may be wider still than what this test was bound to.
	if got := allowedUnder(t, all[:1]); !strings.Contains(got, fmt.Sprint(all[1])) {
		t.Errorf("bound to %v, a helper may use %s, want %v at least", all[:1], got, all)
	}
	if got, want := allowedUnder(t, all[:2]), strings.TrimSpace(fmt.Sprintln(all[:2], nil)); got != want {
		t.Errorf("bound to %v, a helper may use %s, want %s", all[:2], got, want)
	}
}
