package mpishim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"pinwheel/internal/node"
	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
)

// stage is a directory with the libraries, the stand-ins and the programs.
type stage struct {
	dir     string
	objects []string // of the libraries
	err     error
}

// staged is the directory of the stage, "" before it is built.
var staged string

var build = sync.OnceValue(func() (s stage) {
	s.dir, s.err = os.MkdirTemp("", "pinwheel-standin")
	staged = s.dir
	if s.err != nil {
		return s
	}
	if s.objects, s.err = compileObjects(s.dir, []string{"preload", "core", "api"}); s.err != nil {
		return s
	}
	ours := objectsOf(s.objects, "core", "preload")
	at := func(name string) string { return filepath.Join(s.dir, name) }
	cc := func(args ...string) []string {
		return append([]string{"cc", "-O2", "-fno-omit-frame-pointer"}, args...)
	}
	found := []string{"-Wl,-rpath," + s.dir, "-Wl,-rpath-link," + s.dir}
	// The commands of one step run side by side. A step links with what the steps before it made.
	for _, step := range [][][]string{
		{
			append(cc("-shared", "-Wl,-z,defs", "-o", at("libpinwheel.so")), append(ours, "-ldl", "-lpthread")...),
			{"go", "build", "-buildmode=c-shared", "-ldflags", "-extldflags=-Wl,-soname,libpinwheel-go.so",
				"-o", at("libpinwheel-go.so"), "./server"},
			cc("-fPIC", "-shared", "-Wl,-soname,libibverbs.so.1", "-Wl,--version-script=testing/standin/verbs.map",
				"-o", at("libibverbs.so.1"), "testing/standin/verbs.c"),
		},
		{
			cc("-fPIC", "-shared", "-Wl,-soname,libmpi.so.40", "-o", at("libmpi.so.40"), "testing/standin/mpi.c", at("libibverbs.so.1")),
		},
		{
			append(cc("-o", at("path"), "testing/standin/path.c", at("libmpi.so.40"), at("libibverbs.so.1")), found...),
			append(cc("-o", at("life"), "testing/standin/life.c", at("libmpi.so.40"), at("libibverbs.so.1"), "-lpthread"), found...),
			// The library is part of this program, whose calls come back to it (-rdynamic).
			append(append(cc("-rdynamic", "-o", at("waits"), "testing/standin/waits.c", "-Icore", "-Ipreload", "-I../regcache"), ours...),
				append(found, at("libmpi.so.40"), at("libibverbs.so.1"), "-ldl", "-lpthread")...),
		},
	} {
		var g errgroup.Group
		for _, command := range step {
			g.Go(func() error { return compile(command[0], command[1:]...) })
		}
		if s.err = g.Wait(); s.err != nil {
			return s
		}
	}
	return s
})

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(staged)
	os.Exit(status)
}

// theStage builds once, or skips where there is nothing to build with.
func theStage(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"cc", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("building the preload library: %v", err)
		}
	}
	s := build()
	if s.err != nil {
		t.Fatal(s.err)
	}
	if strings.ContainsAny(s.dir, ": ") {
		t.Skipf("LD_PRELOAD can't hold the path of %s: choose another TMPDIR", s.dir)
	}
	return s.dir
}

// play runs a program under the library and returns its status, as a shell
// has it, and what it said.
func play(t *testing.T, dir string, environ []string, program string, args ...string) (status int, said string) {
	t.Helper()
	cmd := testwait.Command(t, filepath.Join(dir, program), args...)
	cmd.Env = append([]string{"LD_LIBRARY_PATH=" + dir, "LD_PRELOAD=" + filepath.Join(dir, "libpinwheel.so")}, environ...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), out.String()
	}
	return ws.ExitStatus(), out.String()
}

func TestEveryPolicyServesAllAndLeavesNothingRegistered(t *testing.T) {
	dir := theStage(t)
	for _, policy := range []string{"pinwheel", "paper", "leave-pinned", "lru", "on-demand"} {
		t.Run(policy, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			const buffers, rounds = 5, 20
			// The stand-in fails ibv_dealloc_pd if a registration is left, and aborts if one goes twice.
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_STATS=" + file}, "path", fmt.Sprint(buffers), fmt.Sprint(rounds))
			if status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			r := readReport(t, file)
			const messages = rounds * 256
			if r.Calls != messages {
				t.Errorf("%d calls wrapped, want %d", r.Calls, messages)
			}
			if policy == "on-demand" {
				if r.Uses != 0 || r.Plain != messages+1 {
					t.Errorf("%d uses managed, %d plain; want 0 and %d", r.Uses, r.Plain, messages+1)
				}
				return
			}
			if r.Uses != messages || r.Plain != 1 { // 1: the transport's pool
				t.Errorf("%d uses managed, %d plain; want %d and 1", r.Uses, r.Plain, messages)
			}
			if sum := r.Hits + r.Waited + r.First + r.Late; sum != r.Uses {
				t.Errorf("%d hits, %d waited, %d first, %d late: %d of %d uses", r.Hits, r.Waited, r.First, r.Late, sum, r.Uses)
			}
			if r.First != buffers {
				t.Errorf("%d first registrations for %d buffers", r.First, buffers)
			}
			if !verified(r) && (r.PathSamples == 0 || r.PathSamples > messages/60 || r.PathNs <= 0) {
				t.Errorf("the path was measured %d times in %d messages: %g ns", r.PathSamples, messages, r.PathNs)
			}
			if policy == "leave-pinned" || policy == "lru" {
				if r.Late != 0 && !verified(r) || r.HelperRegs != 0 {
					t.Errorf("%d late and %d by a helper that is not there", r.Late, r.HelperRegs)
				}
			}
		})
	}
}

// verified reports whether each hit had to be verified: then no use is without
// a question to the server, and a page fault of the process makes the next one late.
func verified(r report.Rank) bool { return r.Mapping == "uffd" || r.Mapping == "pfn" }

func readReport(t *testing.T, file string) (r report.Rank) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Who has no privileges has userfaultfd, with which every page fault of the
// process makes the next use of each buffer a registration: ours must take none
// of their own while they serve.
func TestHitsThatAreVerifiedFaultNothingIn(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	const buffers, rounds = 16, 100
	status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=uffd", "PINWHEEL_STATS=" + file}, "path", fmt.Sprint(buffers), fmt.Sprint(rounds))
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	if strings.Contains(said, "mechanism not available") {
		t.Skip(said)
	}
	// Some of the first uses find the library still starting. One allocation for each use makes it one in eight.
	r := readReport(t, file)
	if r.Uses != rounds*256 || r.First != buffers || r.Late > r.Uses/40 {
		t.Errorf("%d uses, of which %d hits, %d first, %d late", r.Uses, r.Hits, r.First, r.Late)
	}
}

func TestRenewedMemoryIsRegisteredAgain(t *testing.T) {
	dir := theStage(t)
	for _, watch := range []string{"auto", "uffd", "pfn", "none"} {
		t.Run(watch, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch, "PINWHEEL_STATS=" + file}, "life", "renew")
			if status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			r := readReport(t, file)
			if strings.Contains(said, "mechanism not available") {
				t.Skipf("PINWHEEL_WATCH=%s: %s", watch, said)
			}
			// One for the first buffer, one for each of ten that follow at one address.
			if got := r.First + r.Late; got < 11 || watch == "auto" && r.Hits == 0 {
				t.Errorf("watched by %s: %d registrations for 11 buffers, %d hits", r.Mapping, got, r.Hits)
			}
		})
	}
}

func TestWindowsStayRegistered(t *testing.T) {
	dir := theStage(t)
	for _, policy := range []string{"pinwheel", "paper", "lru"} {
		t.Run(policy, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_STATS=" + file}, "life", "windows")
			if status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			// The window over what was sent is a use of it; the pool and the other window are the transport's.
			if r := readReport(t, file); r.Uses != 20+1+60+3 || r.Plain != 2 {
				t.Errorf("%d uses managed, %d plain; want 84 and 2", r.Uses, r.Plain)
			}
		})
	}
}

// A managed handle stays the transport's, whatever it is to be registered for,
// and whether anything is managed at the time.
func TestHandleIsRegisteredAgainForAnything(t *testing.T) {
	if status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned"}, "life", "rereg"); status != 0 || said != "" {
		t.Errorf("status %d: %s", status, said)
	}
}

func TestHugeMessagesAreLeftToTheTransport(t *testing.T) {
	dir := theStage(t)
	for _, watch := range []string{"auto", "uffd", "pfn", "none"} {
		t.Run(watch, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stats.json")
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch, "PINWHEEL_STATS=" + file}, "life", "huge")
			if strings.Contains(said, "mechanism not available") {
				t.Skip(said)
			}
			if status != 0 || said != "" && !strings.Contains(said, unwatched) {
				t.Fatalf("status %d: %s", status, said)
			}
			// Plain are the transport's pool and what is huge; all else is managed, to the end.
			if r := readReport(t, file); r.Uses != 20+3*21 || r.Plain != 1+1+2*21 {
				t.Errorf("%d uses managed, %d plain; want %d and %d", r.Uses, r.Plain, 20+3*21, 1+1+2*21)
			}
		})
	}
}

func TestNodeBudgetIsSharedByItsRanks(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	run := func(environ ...string) report.Rank {
		status, said := play(t, dir, append(environ, "PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS="+file), "path", "16", "20") // 16 buffers of 64 KiB
		if status != 0 {
			t.Fatalf("status %d: %s", status, said)
		}
		return readReport(t, file)
	}
	const node = 3 << 20 // 1 MiB of it goes to what the transport registers itself, by rank
	if r := run("PINWHEEL_NODE_BUDGET=3M", "OMPI_COMM_WORLD_LOCAL_SIZE=1"); r.PeakPinnedBytes < 1<<20 || r.Late != 0 && !verified(r) {
		t.Errorf("alone: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	if r := run("PINWHEEL_NODE_BUDGET=3M", "OMPI_COMM_WORLD_LOCAL_SIZE=4"); r.PeakPinnedBytes > node/4 || r.Late == 0 {
		t.Errorf("one of four: %d bytes pinned of %d, %d late", r.PeakPinnedBytes, node/4, r.Late)
	}
}

// A transport that knows nothing of Pinwheel ends the program if its registrations fail.
func TestTransportIsNeverRefusedByTheNodeBudget(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	const rounds = 4
	status, said := play(t, dir, []string{"PINWHEEL_NODE_BUDGET=32K", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PINWHEEL_STATS=" + file},
		"path", "16", fmt.Sprint(rounds)) // buffers of 64 KiB
	if status != 0 || strings.Count(said, "the node is over its budget") != 1 {
		t.Errorf("status %d: %s", status, said)
	}
	if r := readReport(t, file); r.Uses != 0 || r.Plain < rounds*256 {
		t.Errorf("%d uses managed, %d plain; want none and at least %d", r.Uses, r.Plain, rounds*256)
	}
}

// Another rank, which is this test, leaves its part to whoever needs it.
func TestRankUsesWhatOthersLeaveOfTheNodeBudget(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	job := strconv.Itoa(os.Getpid())
	run := func() report.Rank {
		status, said := play(t, dir, []string{
			"PINWHEEL_NODE_BUDGET=6M", "SLURM_JOB_ID=" + job, "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file,
		}, "path", "64", "20") // 64 buffers of 64 KiB, and 1 MiB of the transport's own
		if status != 0 {
			t.Fatalf("status %d: %s", status, said)
		}
		return readReport(t, file)
	}
	if r := run(); r.PeakPinnedBytes > 2<<20 || r.Late == 0 {
		t.Errorf("alone, one of two: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	other, err := node.Join(node.Options{Job: "slurm-" + job, Rank: 1, BudgetBytes: 6 << 20, Ranks: 2, Warn: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Shrink(0)
	if r := run(); r.PeakPinnedBytes < 4<<20 || r.Late != 0 && !verified(r) {
		t.Errorf("with all of the budget: %d bytes pinned, %d late", r.PeakPinnedBytes, r.Late)
	}
	testwait.Until(t, "the other gets what the first has left", func() bool { return other.Grow(6<<20) == 6<<20 })
}

func TestProgramsLiveAsWithoutUs(t *testing.T) {
	dir := theStage(t)
	for how, want := range map[string]int{
		"": 0, "status": 42, "threads": 0, "signals": 0, "fork": 0, "process": 0, "after": 0,
		"exit": 9, "_exit": 10, "abort": 128 + int(syscall.SIGABRT), "segv": 128 + int(syscall.SIGSEGV),
	} {
		t.Run("life "+how, func(t *testing.T) {
			t.Parallel()
			if status, said := play(t, dir, nil, "life", how); status != want {
				t.Errorf("status %d, want %d: %s", status, want, said)
			}
		})
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
				status, said := play(t, dir, []string{"PINWHEEL_PROFILE=" + profiles, "OMPI_COMM_WORLD_LOCAL_SIZE=1"}, "life", how)
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

// The word that says so is of the call that the program has made, whatever MPI calls inside of it.
func TestHelperSeesWhenACallMayBlock(t *testing.T) {
	if status, said := play(t, theStage(t), []string{"LD_PRELOAD="}, "waits"); status != 0 || said != "" {
		t.Errorf("status %d: %s", status, said)
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
	if status != 42 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "libpinwheel-go.so") || !strings.Contains(said, "without Pinwheel") {
		t.Errorf("status %d, said %q", status, said)
	}
	_, said = play(t, dir, []string{"PINWHEEL_LOG=Off", "LD_PRELOAD=" + filepath.Join(alone, "libpinwheel.so")}, "life", "status")
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

func TestReportIsTextForPeople(t *testing.T) {
	status, said := play(t, theStage(t), []string{"PINWHEEL_STATS=y", "PINWHEEL_POLICY=leave-pinned"}, "life", "status")
	if status != 42 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"@ Command ", "life status", "@ Policy   leave-pinned", "Registered memory and registrations"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}
