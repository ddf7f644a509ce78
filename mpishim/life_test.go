package mpishim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/trace"
)

func TestProgramsLiveAsWithoutUs(t *testing.T) {
	dir := theStage(t)
	for how, want := range map[string]int{
		"": 0, "status": 42, "threads": 0, "signals": 0, "fork": 0, "process": 0, "after": 0,
		"exit": 9, "_exit": 10, "abort": 128 + int(syscall.SIGABRT), "segv": 128 + int(syscall.SIGSEGV),
	} {
		for _, wait := range []string{"y", "n"} { // n: many end before the watch of mappings is open
			t.Run(fmt.Sprintf("life %s, waits: %s", how, wait), func(t *testing.T) {
				t.Parallel()
				if status, said := play(t, dir, []string{"PINWHEEL_WATCH_WAIT=" + wait}, "life", how); status != want {
					t.Errorf("status %d, want %d: %s", status, want, said)
				}
			})
		}
	}
}

// A run that ended otherwise than its program meant to has learned what would mislead the next one.
func TestOnlyARunThatEndsWellLeavesAProfile(t *testing.T) {
	dir := theStage(t)
	for how, want := range map[string]struct {
		status int
		kept   bool
	}{"": {0, true}, "leave": {0, true}, "exit": {9, false}, "_exit": {10, false}} {
		t.Run("life "+how, func(t *testing.T) {
			t.Parallel()
			profiles := t.TempDir()
			runs := 0
			testwait.Until(t, "the helper hears of a use before the program ends", func() bool {
				status, said := play(t, dir, []string{"PINWHEEL_PROFILE=" + profiles, "PINWHEEL_COST=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}, "life", how)
				if strings.Contains(said, unwatched) {
					t.Skip(said)
				}
				kept, err := filepath.Glob(filepath.Join(profiles, "*", "*"))
				if status != want.status || said != "" || err != nil || len(kept) > 0 && !want.kept {
					t.Fatalf("status %d, said %q, kept %q, %v", status, said, kept, err)
				}
				runs++
				return len(kept) > 0 || !want.kept && runs == 5
			})
		})
	}
}

func TestDisabledSaysAndDoesNothing(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats")
	status, said := play(t, dir, []string{"PINWHEEL_DISABLE=1", "PINWHEEL_STATS=" + file}, "life", "status")
	if _, err := os.Stat(file); status != 42 || said != "" || err == nil {
		t.Errorf("status %d, %q, report: %v", status, said, err)
	}
}

func TestNobodyWaitsForTheReaderOfAFIFO(t *testing.T) {
	dir, fifo := theStage(t), filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"PINWHEEL_STATS", "PINWHEEL_RECORD"} {
		status, said := play(t, dir, []string{variable + "=" + fifo}, "path", "2", "2")
		if status != 0 || strings.Count(said, fifo+": nobody reads it (see "+variable+")") != 1 {
			t.Errorf("%s: status %d, %q", variable, status, said)
		}
	}
}

func TestWithoutGoSideOneLineAndPlain(t *testing.T) {
	dir, alone := theStage(t), t.TempDir()
	lib, err := os.ReadFile(filepath.Join(dir, "libpinwheel.so"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(alone, "libpinwheel.so"), lib, 0o755); err != nil {
		t.Fatal(err)
	}
	status, said := play(t, dir, []string{"LD_PRELOAD=" + filepath.Join(alone, "libpinwheel.so")}, "life", "status")
	if status != 42 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "libpinwheel-go.so") ||
		!strings.Contains(said, "without Pinwheel") {
		t.Errorf("status %d, said %q", status, said)
	}
	_, said = play(t, dir,
		[]string{"PINWHEEL_LOG=Off", "LD_PRELOAD=" + filepath.Join(alone, "libpinwheel.so")}, "life", "status")
	if said != "" {
		t.Errorf("with PINWHEEL_LOG=Off: said %q", said)
	}
}

func TestPreloadedLauncherIsToldOnceAndDaemonsAreLeftAlone(t *testing.T) {
	dir := theStage(t)
	for name, lines := range map[string]int{"mpirun": 1, "orted": 0} {
		program := filepath.Join(dir, name)
		if err := os.Link(filepath.Join(dir, "life"), program); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(program) }) // the next run of the test finds the same stage
		status, said := play(t, dir, nil, name, "status")
		if status != 42 || strings.Count(said, "\n") != lines || lines == 1 && !strings.Contains(said, "launcher mpirun") {
			t.Errorf("%s: status %d, said %q", name, status, said)
		}
	}
}

// dlclose unmaps a library, and dlopen maps another one there.
func TestCallsOfALibraryInThePlaceOfAnotherAreItsOwn(t *testing.T) {
	dir, path := theStage(t), filepath.Join(t.TempDir(), "t.pwt")
	status, said := play(t, dir, []string{"PINWHEEL_RECORD=" + path},
		"reload", filepath.Join(dir, "first.so"), filepath.Join(dir, "second.so"))
	switch {
	case status == 77:
		t.Skip("the second library was loaded elsewhere")
	case status != 0:
		t.Fatalf("status %d: %s", status, said)
	}
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Rank(f.Ranks()[0])
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Modules(); !slices.ContainsFunc(m, func(m trace.Module) bool { return m.Name == "second.so" }) {
		t.Errorf("calls come from %+v, and none from second.so", m)
	}
}

// What a transport registers that no call was given is counted: here the memory of windows.
func TestATraceSaysWhatOfTheTransportItCannotShow(t *testing.T) {
	dir := theStage(t)
	for how, want := range map[string]bool{"": false, "windows": true} {
		path := filepath.Join(t.TempDir(), "t.pwt")
		if status, said := play(t, dir, []string{"PINWHEEL_RECORD=" + path}, "life", how); status != 0 {
			t.Fatalf("life %s: status %d: %s", how, status, said)
		}
		f, err := trace.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		unseen, err := f.Unseen()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(unseen, func(u trace.Unseen) bool { return strings.HasPrefix(u.What, "registrations") })
		if (i >= 0) != want || want && (unseen[i].Times == 0 || unseen[i].Bytes == 0) {
			t.Errorf("life %s: %+v", how, unseen)
		}
		rr, err := f.Rank(0)
		if err != nil {
			t.Fatal(err)
		}
		if p := rr.Place(); p.Processors == 0 || p.Ranks == 0 {
			t.Errorf("life %s ran on %+v", how, p)
		}
	}
}
