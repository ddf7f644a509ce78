package mpishim

import (
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
