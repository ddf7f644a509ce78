package mpishim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

func TestEveryPolicyServesAllAndLeavesNothingRegistered(t *testing.T) {
	dir := theStage(t)
	for _, policy := range []string{"pinwheel", "paper", "paper-strict", "leave-pinned", "lru", "on-demand"} {
		t.Run(policy, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			const buffers, rounds = 5, 20
			// The stand-in fails ibv_dealloc_pd if a registration is left, and aborts if one goes twice.
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=" + policy, "PINWHEEL_COST=0", "PINWHEEL_STATS=" + file}, "path",
				fmt.Sprint(buffers), fmt.Sprint(rounds))
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

// A message does not wait for the kernel to attach programs. Without those nothing is cached, but the helper hears of
// uses all the same.
func TestFirstMessageDoesNotWaitForTheWatch(t *testing.T) {
	dir := theStage(t)
	var last string
	testwait.Bound(t, func() any { return last })
	for rounds := 100; ; rounds = min(4*rounds, 1600) { // 2 ms each, until the watch is open
		file := filepath.Join(t.TempDir(), "stats.json")
		status, said := play(t, dir, []string{"PINWHEEL_WATCH_WAIT=n", "PINWHEEL_COST=0", "PINWHEEL_STATS=" + file}, "path",
			"4", fmt.Sprint(rounds), "2000", "4")
		if status != 0 || strings.Contains(said, "pinwheel:") && !strings.Contains(said, unwatched) {
			t.Fatalf("status %d: %s", status, said)
		}
		r := readReport(t, file)
		if r.Uses+r.Plain != r.Calls+1 || r.Plain != 1+r.Early || r.Early == 0 { // 1: the transport's pool
			t.Errorf("%d uses managed, %d plain, of %d", r.Uses, r.Plain, r.Calls)
		}
		heard := int64(r.Lost + r.Repeated)
		for _, site := range r.Sites {
			heard += site.Uses
		}
		if r.Uses > 0 && (heard > int64(r.Uses) || strings.Contains(said, unwatched)) {
			return
		}
		// On a busy machine, the helper does not come to the last uses.
		last = fmt.Sprintf("the helper heard of %d uses, of %d through the cache and %d past it", heard, r.Uses, r.Early)
	}
}

// Who has no privileges has userfaultfd, with which every page fault of the
// process makes the next use of each buffer a registration: ours must take none
// of their own while they serve.
func TestHitsThatAreVerifiedFaultNothingIn(t *testing.T) {
	dir := theStage(t)
	file := filepath.Join(t.TempDir(), "stats.json")
	const buffers, rounds = 16, 100
	status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=uffd", "PINWHEEL_STATS=" + file},
		"path", fmt.Sprint(buffers), fmt.Sprint(rounds))
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
			status, said := play(t, dir,
				[]string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch, "PINWHEEL_STATS=" + file}, "life", "renew")
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
	if status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned"}, "life", "rereg"); status != 0 ||
		said != "" {
		t.Errorf("status %d: %s", status, said)
	}
}

func TestHugeMessagesAreLeftToTheTransport(t *testing.T) {
	dir := theStage(t)
	for _, watch := range []string{"auto", "uffd", "pfn", "none"} {
		t.Run(watch, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "stats.json")
			status, said := play(t, dir,
				[]string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch, "PINWHEEL_STATS=" + file}, "life", "huge")
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

// A program may open and close as many protection domains as it likes, beside a thread that registers in another.
func TestDomainsOneAfterTheOtherAreManaged(t *testing.T) {
	if status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned"}, "life", "domains"); status != 0 ||
		said != "" {
		t.Errorf("status %d: %s", status, said)
	}
}

// A tool that is linked into the program comes before the preload library, which sees what the tool calls.
func TestCallsOfAToolInTheProgramAreSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file},
		"profiled", "30")
	if status != 0 || said != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	// MPI_Barrier calls MPI_Send, of the tool, from inside.
	if r := readReport(t, file); r.Calls != 31 || r.Uses != 30 || r.Plain != 2 {
		t.Errorf("%d calls, %d uses managed, %d plain; want 31, 30 and 2", r.Calls, r.Uses, r.Plain)
	}
}

// So does what measures a job without Pinwheel.
func TestMeterSeesAProgramWithATool(t *testing.T) {
	dir, out := theStage(t), t.TempDir()
	meter := filepath.Join(out, "libpinwheel-meter.so")
	if err := compile("cc", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Ipreload", "-o", meter, "meter/meter.c",
		"preload/symbol.c", "-ldl"); err != nil {
		t.Fatal(err)
	}
	status, said := play(t, dir, []string{"LD_PRELOAD=" + meter, "LIBPINWHEEL_METER=" + out}, "profiled")
	if status != 0 || said != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	files, _ := filepath.Glob(filepath.Join(out, "*")) // the pattern is good
	for _, file := range files {
		if text, _ := os.ReadFile(file); file != meter && strings.Contains(string(text), `"finalize"`) {
			return
		}
	}
	t.Errorf("no readings from MPI_Init to MPI_Finalize in %q", files)
}

// MPI-IO is made of messages that MPI sends to itself, out of the program's buffer and out of memory of its own.
func TestMessagesOfMPIIOAreManaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file},
		"life", "file")
	if status != 0 || said != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	r := readReport(t, file)
	if r.Calls != 30 || r.Uses != 20+3*10 || r.Plain != 1 {
		t.Errorf("%d calls, %d uses managed, %d plain; want 30, 50 and 1", r.Calls, r.Uses, r.Plain)
	}
}

// A persistent collective names its buffers once, and both are used at each start.
func TestBuffersOfPersistentCollectivesAreManaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file},
		"life", "plans")
	if status != 0 || said != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	if r := readReport(t, file); r.Uses != 20+2*5 || r.Plain != 1 {
		t.Errorf("%d uses managed, %d plain; want 30 and 1", r.Uses, r.Plain)
	}
}

// What no call of MPI was given passes by once, and the report counts it, so that nobody takes it for Pinwheel's. When
// it comes again, it is a buffer like others.
func TestMessagesThatNobodyAnnouncedAreManagedWhenTheyComeAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	status, said := play(t, theStage(t), []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + file},
		"life", "moves")
	if status != 0 || said != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	if r := readReport(t, file); r.Uses != 20+6 || r.Passed != 1 || r.PassedBytes != 1<<16 {
		t.Errorf("%d uses managed, %d past us, of %d bytes; want 26, 1 and %d", r.Uses, r.Passed, r.PassedBytes, 1<<16)
	}
}

func TestReportIsTextForPeople(t *testing.T) {
	status, said := play(t, theStage(t), []string{"PINWHEEL_STATS=y", "PINWHEEL_POLICY=leave-pinned"}, "life", "status")
	if status != 42 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"@ Command ", "life status", "@ Policy   leave-pinned",
		"Registered memory and registrations"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}
