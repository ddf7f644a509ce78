//go:build linux && cgo

package ibv_test

import (
	"os"
	"os/exec"
	"testing"

	"pinwheel/verbs/rdma/rdmatest"
)

// TestDeclarationsMatchTheHeader compiles the static assertions of
// abi_check.c. The test bed has the header; elsewhere it may be missing.
func TestDeclarationsMatchTheHeader(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		if os.Getenv(rdmatest.RequireEnv) != "" {
			t.Fatal(err)
		}
		t.Skipf("no header to compare with (install libibverbs-dev, or run `make test-guest`): %v", err)
	}
	out, err := exec.Command("cc", "-fsyntax-only", "testdata/abi_check.c").CombinedOutput()
	if err != nil {
		t.Fatalf("abi.h does not declare what <infiniband/verbs.h> does: %v\n%s", err, out)
	}
}
