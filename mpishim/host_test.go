package mpishim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
)

// collecting has the Go side collect its garbage all the time, and preempt for that if it may.
var collecting = []string{"GOGC=1", "PINWHEEL_POLICY=pinwheel", "PINWHEEL_IDLE_POLICY=aggressive"}

// Each row is a way in which programs take signals. See docs/host-process.md.
func TestSignalsAreTheProgramsOwn(t *testing.T) {
	dir := theStage(t)
	for _, how := range []string{"counts", "waits", "reads", "before", "during", "after", "resets", "profiles", "masks"} {
		for _, debug := range []string{"", "GODEBUG=asyncpreemptoff=0"} { // it must not turn that on again
			t.Run(strings.TrimSpace(how+" "+debug), func(t *testing.T) {
				testwait.Bound(t)
				environ := collecting
				if debug != "" {
					environ = append([]string{debug}, collecting...)
				}
				if status, said := play(t, dir, environ, "signals", how); status != 0 ||
					said != "" && !strings.Contains(said, unwatched) {
					t.Errorf("status %d: %.2000s", status, said)
				}
			})
		}
	}
}

// The runtime aborts a process that has no memory or threads for it.
func TestWithoutRoomForTheGoSideOneLineAndPlain(t *testing.T) {
	dir := theStage(t)
	if err := os.Chmod(dir, 0o711); err != nil { // for another user
		t.Fatal(err)
	}
	for how, why := range map[string]string{"addresses": "ulimit -v", "locked": "mlockall", "threads": "ulimit -u"} {
		t.Run(how, func(t *testing.T) {
			testwait.Bound(t)
			if how != "addresses" && os.Geteuid() != 0 {
				t.Skip("root changes to a user of whom there are no other processes")
			}
			status, said := play(t, dir, collecting, "limits", how)
			if status != 0 || strings.Count(said, "\n") != 1 || !strings.Contains(said, why) ||
				!strings.Contains(said, "going on without Pinwheel") {
				t.Errorf("status %d: %.2000s", status, said)
			}
		})
	}
}

// What comes to lack later stops the Go side for a while, and not the program.
func TestLimitsThatComeLaterEndNothing(t *testing.T) {
	dir := theStage(t)
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"threads-later", "fds", "pipe", "setuid", "stacks", "locks", "pinned-later"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel() // threads-later may wait for the answer of a thread that there is not, for 30 s
			testwait.Bound(t)
			if os.Geteuid() != 0 && !slices.Contains([]string{"fds", "pipe", "stacks"}, how) {
				t.Skip("root changes to a user of whom there are no other processes")
			}
			environ := append([]string{"PINWHEEL_STATS=y"}, collecting...)
			if status, said := play(t, dir, environ, "limits", how); status != 0 {
				t.Errorf("status %d: %.2000s", status, said)
			}
		})
	}
}

// The first sends of a program start the Go side: no more of its address space and threads than docs/host-process.md
// says, so that what start.c asks for is enough.
func TestGoSideTakesWhatItHasAskedFor(t *testing.T) {
	testwait.Bound(t)
	status, said := play(t, theStage(t), collecting, "limits", "size")
	var kib, threads int
	if _, err := fmt.Sscanf(said, "%d KiB, %d threads", &kib, &threads); status != 0 || err != nil {
		t.Fatalf("status %d: %s", status, said)
	}
	t.Logf("%d KiB of address space, %d threads", kib, threads)
	if kib > 3<<20 {
		t.Errorf("%d KiB of address space: start.c looks for 3 GiB", kib)
	}
}
