package verbs_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/verbs"
)

func TestStatusBytesReadsKilobyteFieldsOnly(t *testing.T) {
	if rss, err := verbs.StatusBytes("VmRSS"); err != nil || rss < 1<<20 || rss%1024 != 0 {
		t.Errorf("VmRSS of this test is %d, %v", rss, err)
	}
	if n, err := verbs.StatusBytes("VmPin"); err != nil || n != 0 {
		t.Errorf("VmPin of a process without registrations is %d, %v", n, err)
	}
	for _, field := range []string{"Name", "VmNone", "", "Vm"} {
		if _, err := verbs.StatusBytes(field); err == nil || !strings.Contains(err.Error(), "/proc/self/status") {
			t.Errorf("field %q: %v, want an error that names the file", field, err)
		}
	}
}

func TestPhysicalBytesIsWhatTheKernelSays(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	want := int64(info.Totalram) * int64(info.Unit)
	if got := verbs.PhysicalBytes(); got>>10 != want>>10 {
		t.Errorf("%d bytes of memory, sysinfo says %d", got, want)
	}
}

func TestCostIsLinearInPages(t *testing.T) {
	c := verbs.Cost{PerPageNs: 0.5, FixedNs: 100}
	for pages, want := range map[uint64]int64{0: 100, 1: 100, 2: 101, 1 << 20: 100 + 1<<19} {
		if got := c.Ns(pages); got != want {
			t.Errorf("%d pages take %d ns, want %d", pages, got, want)
		}
	}
	if got := (verbs.Cost{PerPageNs: 1e12}).Ns(1 << 50); got != 1<<60 {
		t.Errorf("very many pages take %d ns, want %d", got, 1<<60)
	}
}
