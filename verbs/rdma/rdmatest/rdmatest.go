// Package rdmatest gives tests an RDMA device, or the reason why not.
package rdmatest

import (
	"os"
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
		t.Skipf("%v (run `make test-rdma`)", err)
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
