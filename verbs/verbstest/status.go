package verbstest

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// StatusBytes returns a field of /proc/self/status that is given in kB, in
// bytes: "VmPin" is what io_uring and RDMA drivers pinned, "VmLck" what is locked.
func StatusBytes(t testing.TB, field string) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && name == field {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatalf("/proc/self/status: %q: %v", s.Text(), err)
			}
			return kb << 10
		}
	}
	t.Fatalf("/proc/self/status has no %s", field)
	return 0
}
