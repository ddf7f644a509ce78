package mpishim

import (
	"path/filepath"
	"strings"
	"testing"
)

// A library that says that it is MPICH may have MPICH's ABI or the standard one of MPI-5. Asked about a handle of the
// other, it ends the program.
func TestABIIsKnownByTheNameOfTheLibrary(t *testing.T) {
	dir := theStage(t)
	for _, program := range []string{"standard", "mpich"} {
		file := filepath.Join(t.TempDir(), "stats.json")
		status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file}, program)
		if status != 0 || said != "" {
			t.Fatalf("%s: status %d: %s", program, status, said)
		}
		// The first message is the first use of verbs. Handles of all three datatypes are known.
		r := readReport(t, file)
		if r.Calls != 31 || r.Uses != 29 || r.Large != 29 || r.Rank != 0 || r.Size != 1 {
			t.Errorf("%s: %d calls, %d uses, %d large, rank %d of %d; want 31, 29 and 29, rank 0 of 1",
				program, r.Calls, r.Uses, r.Large, r.Rank, r.Size)
		}
	}
}

// What may have either ABI is left alone, and one line says so.
func TestUnknownABIIsLeftAlone(t *testing.T) {
	status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned"}, "another")
	if status != 0 || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, "this MPI library is not known (MPICH Version:") {
		t.Errorf("status %d: %s", status, said)
	}
}
