package mpishim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program of docs/tutorial-c.md, as a reader builds it.
func TestTheTutorialsTransportMovesItsData(t *testing.T) {
	dir := theLinkedStage(t)
	err := compile("cc", "-O2", "-g", "-std=gnu11", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror", "-Iinclude",
		"-o", filepath.Join(dir, "tutorial"), "example/tutorial.c", filepath.Join(dir, "libpinwheel-api.so.0"), "-lpthread",
		"-Wl,-rpath,"+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"PINWHEEL_POLICY=pinwheel", "PINWHEEL_POLICY=leave-pinned", "PINWHEEL_POLICY=on-demand",
		"PINWHEEL_DISABLE=y"} {
		t.Run(setting, func(t *testing.T) {
			status, said := playLinked(t, []string{setting}, "tutorial", "60", "2")
			if status != 0 || !strings.Contains(said, "60 messages, data right\n") ||
				!strings.Contains(said, "registered at the end: 0 bytes\n") {
				t.Errorf("status %d, said %q", status, said)
			}
			if setting == "PINWHEEL_DISABLE=y" && !strings.Contains(said, "uses: 0 hits, 0 waited, 0 first, 0 late, 120 plain\n") {
				t.Errorf("said %q", said)
			}
		})
	}
}

// What the page shows of the transport over libibverbs; test-guest GUEST=api runs it.
func TestTheExampleTransportCompiles(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("<infiniband/verbs.h> is missing: make install-softverbs")
	}
	err := compile("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-c", "-o", filepath.Join(t.TempDir(), "transport.o"),
		"example/transport.c")
	if err != nil {
		t.Error(err)
	}
}
