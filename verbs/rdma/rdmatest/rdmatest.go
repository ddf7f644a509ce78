// Package rdmatest gives tests an RDMA device, or the reason why not.
package rdmatest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pinwheel/verbs/rdma"
)

// RequireEnv names the environment variable that makes a missing device a
// failure instead of a skip. The test bed sets it: there, a device is a promise.
const RequireEnv = "PINWHEEL_REQUIRE_RDMA"

// Need skips the test on a machine without RDMA.
func Need(t testing.TB) {
	t.Helper()
	err := rdma.Probe()
	switch {
	case err == nil:
	case os.Getenv(RequireEnv) != "":
		t.Fatalf("%s is set, but: %v", RequireEnv, err)
	default:
		t.Skipf("%v (run `make test-guest`)", err)
	}
}

// Open returns a provider on the machine's device, closed when the test ends.
func Open(t testing.TB) *rdma.Provider {
	t.Helper()
	Need(t)
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the provider: %v", err)
		}
	})
	return p
}

// DeviceRegions returns how many memory regions all processes together have on
// the machine's devices, as the kernel counts (rdma-resource(8)).
func DeviceRegions(t testing.TB) int {
	t.Helper()
	out, err := exec.Command("rdma", "resource", "show").CombinedOutput()
	if err != nil {
		t.Fatalf("rdma resource show: %v: %s", err, out)
	}
	total := 0
	fields := strings.Fields(string(out))
	for i, f := range fields {
		if f != "mr" || i+1 == len(fields) {
			continue
		}
		n, err := strconv.Atoi(fields[i+1])
		if err != nil {
			t.Fatalf("rdma resource show: %q: %v", out, err)
		}
		total += n
	}
	return total
}

// PinnedBytes returns what the kernel counts as pinned for a process: VmPin of /proc/PID/status.
func PinnedBytes(pid int) (int64, error) {
	file := "/proc/" + strconv.Itoa(pid) + "/status"
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmPin:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no VmPin", file)
}
