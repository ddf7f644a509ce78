//go:build linux && cgo

package ibv

import (
	"os"
	"os/exec"
	"testing"
)

// TestDeclarationsMatchTheHeader compiles the static assertions of
// abi_check.c. `make test-rdma` names the header's directory and thereby
// requires it; elsewhere it may be missing.
func TestDeclarationsMatchTheHeader(t *testing.T) {
	include := os.Getenv("PINWHEEL_VERBS_INCLUDE")
	required := include != ""
	if !required {
		include = "/usr/include"
	}
	if _, err := os.Stat(include + "/infiniband/verbs.h"); err != nil {
		if required {
			t.Fatal(err)
		}
		t.Skipf("no header to compare with (install libibverbs-dev): %v", err)
	}
	out, err := exec.Command("cc", "-fsyntax-only", "-I", include, "testdata/abi_check.c").CombinedOutput()
	if err != nil {
		t.Fatalf("abi.h does not declare what %s/infiniband/verbs.h does: %v\n%s", include, err, out)
	}
}
