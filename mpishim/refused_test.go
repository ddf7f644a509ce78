package mpishim

import (
	"fmt"
	"strings"
	"testing"
)

// What can't be kept is registered once for each use, what can't be registered is not tried by everyone each time, and a
// read-only buffer is kept.
func TestMemoryThatIsRefusedIsNotTriedInVain(t *testing.T) {
	dir := theStage(t)
	for _, watch := range []string{"bpf", "uffd", "pfn"} {
		t.Run(watch, func(t *testing.T) {
			status, said := play(t, dir, []string{"PINWHEEL_POLICY=leave-pinned", "PINWHEEL_WATCH=" + watch}, "refused")
			if status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			if strings.Contains(said, "mechanism not available") {
				t.Skip(said)
			}
			const sends = 200
			for _, c := range []struct {
				what        string
				least, most int
				fail        bool
			}{
				{what: "usual", least: 1, most: sends / 4},
				{what: "constant", least: 1, most: sends / 4},
				{what: "none", least: sends, most: 2*sends + 20, fail: true}, // the transport's own try, and one before
				{what: "device", least: sends, most: sends + 50},
				{what: "renewed", least: 1, most: sends / 2},
			} {
				_, after, _ := strings.Cut("\n"+said, "\n"+c.what+" ")
				var asked, failed int
				if _, err := fmt.Sscan(after, &asked, &failed); err != nil {
					t.Fatalf("%s: %v in %s", c.what, err, said)
				}
				if asked < c.least || asked > c.most || (failed > 0) != c.fail {
					t.Errorf("%s: the device was asked %d times in %d sends, %d failed; want %d to %d, failed: %v",
						c.what, asked, sends, failed, c.least, c.most, c.fail)
				}
			}
			if n := strings.Count(said, "memory of a device"); n != 1 && watch == "bpf" {
				t.Errorf("said %d times: %s", n, said)
			}
		})
	}
}
