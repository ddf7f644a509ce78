package mpishim

import (
	"os"
	"path/filepath"
	"testing"
)

// handedOver: what Go's threads call with was written before by a thread that
// asked through a mailbox. ThreadSanitizer does not see Go's half of that.
const handedOver = "race:api_provide\nrace:api_withdraw\n"

func TestAPIUnderSanitizers(t *testing.T) {
	if os.Getenv("PINWHEEL_SANITIZE") == "" {
		t.Skip("builds the library twice more: make test-sanitize")
	}
	stage := theLinkedStage(t)
	for _, sanitizer := range []string{"address", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			probe := filepath.Join(dir, "probe.c")
			if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			flag := "-fsanitize=" + sanitizer
			err := compile("cc", flag, "-o", filepath.Join(dir, "probe"), probe)
			if err == nil {
				err = compile(filepath.Join(dir, "probe")) // it needs an address space laid out as it expects
			}
			if err != nil {
				t.Skipf("no %s: %v", flag, err)
			}
			if err := buildLinked(dir, []string{"linked", "linkedlife"}, flag); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(stage, "libpinwheel-go.so"), filepath.Join(dir, "libpinwheel-go.so")); err != nil {
				t.Fatal(err)
			}
			suppressions := filepath.Join(dir, "suppressions")
			if err := os.WriteFile(suppressions, []byte(handedOver), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, run := range [][]string{{"linked", "accounting"}, {"linked", "threads"}, {"linkedlife", "fork"}, {"linkedlife", "closing"}, {"linkedlife", "last-release"}, {"linkedlife", "refused"}} {
				report := filepath.Join(dir, "stats.json")
				environ := []string{"LD_PRELOAD=", "TSAN_OPTIONS=suppressions=" + suppressions, "PINWHEEL_POLICY=leave-pinned", "PINWHEEL_STATS=" + report}
				status, said := play(t, dir, environ, run[0], run[1])
				if why := inapplicable(t, said, report, run[1]); why != "" {
					t.Log(why)
					continue
				}
				if status != 0 || said != "" {
					t.Errorf("%v: status %d, said %.2000q", run, status, said)
				}
			}
		})
	}
}
