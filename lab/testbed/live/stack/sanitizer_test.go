package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program with AddressSanitizer runs under "pinwheel run" as any other, also behind a wrapper, and
// its errors are still found.
func TestProgramWithAddressSanitizer(t *testing.T) {
	pinwheel, err := filepath.Abs("../../../../bin/pinwheel")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pinwheel); err != nil {
		t.Skipf("%v (make build)", err)
	}
	// Open MPI's hwloc reads the names of all PCI devices with a realloc for each, and under AddressSanitizer each
	// copies them all: ten seconds of processor time in each rank.
	environ := []string{"ASAN_OPTIONS=detect_leaks=0", "HWLOC_COMPONENTS=-pci"}
	for _, s := range All {
		t.Run(s.Name, func(t *testing.T) {
			d, program := need(t, s)
			out, err := exec.Command("mpicc."+s.MPI, "-g", "-w", "-fsanitize=address", "-pthread", "-o", program,
				filepath.Join(programs, "halo.c")).CombinedOutput()
			if err != nil {
				t.Skipf("no AddressSanitizer: %v\n%s", err, out)
			}
			for _, run := range [][]string{{program, "8"}, {"env", "A=1", program, "8"}} {
				report := filepath.Join(t.TempDir(), "report")
				j := Job{Stack: s, Device: d, Ranks: 2, Program: run, Environ: environ,
					Under: []string{pinwheel, "run", "--report=" + report, "--"}}
				res, err := j.Run(limit)
				if err != nil || res.Status != 0 || !strings.Contains(res.Output, "data right") {
					t.Fatalf("%q: status %d, %v\n%s", run, res.Status, err, res.Output)
				}
				if text, err := os.ReadFile(report); !strings.Contains(string(text), "2 ranks") {
					t.Errorf("%q: %v\n%s", run, err, text)
				}
			}
		})
	}
}
