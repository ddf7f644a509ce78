package placement

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// allowedUnder returns what AllowedCPUs returns in a process with the given
// affinity.
func allowedUnder(t *testing.T, cpus []int) string {
	t.Helper()
	var result string
	testwait.OnThreadOfItsOwn(func() { // and its affinity
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			result = err.Error()
			return
		}
		cmd := testwait.Command(t, os.Args[0], "-test.run=^$") // inherits the affinity
		cmd.Env = append(os.Environ(), peerEnv+"=allowed")
		out, err := cmd.CombinedOutput()
		if err != nil {
			out = fmt.Append(out, err)
		}
		result = strings.TrimSpace(string(out))
	})
	return result
}

func TestHelperOfBoundRankMayUseTheCpuset(t *testing.T) {
	all, err := AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	core := coreOf(os.DirFS("/"), all[0])
	core = slices.DeleteFunc(core, func(cpu int) bool { return !slices.Contains(all, cpu) })
	i := slices.IndexFunc(all, func(cpu int) bool { return !slices.Contains(core, cpu) })
	if i < 0 {
		t.Skip("this process may use one core only: nothing to tell apart")
	}
	// The cpuset may be wider still than what this test was bound to.
	for _, bound := range [][]int{all[:1], core} {
		if got := allowedUnder(t, bound); !strings.Contains(got, fmt.Sprint(all[i])) {
			t.Errorf("bound to %v, a helper may use %s, want %v at least", bound, got, all)
		}
	}
	two := []int{all[0], all[i]}
	if got, want := allowedUnder(t, two), strings.TrimSpace(fmt.Sprintln(two, nil)); got != want {
		t.Errorf("bound to %v, a helper may use %s, want %s", two, got, want)
	}
}

func TestQuietProcessorsAreForThoseBoundToThem(t *testing.T) {
	if got := widened([]int{6}, []int{0, 1, 5, 6, 7}, []int{5, 6, 7}); !slices.Equal(got, []int{0, 1, 6}) {
		t.Errorf("bound to 6, with 5-7 isolated: %v", got)
	}
}
