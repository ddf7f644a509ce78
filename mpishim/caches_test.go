package mpishim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/vmwatch"
)

// A rank that can watch nothing gets its transport's caches back, but for what somebody else has set.
func TestTransportKeepsItsCachesWhereNothingIsWatched(t *testing.T) {
	dir := theStage(t)
	for _, c := range []struct {
		watch  string
		nobody bool // without privileges
		back   bool
	}{
		{watch: "none", back: true}, {watch: "NONE", back: true}, {watch: "bpf", nobody: true, back: true},
		{watch: "pfn", nobody: true, back: true}, {watch: "uffd"}, {watch: "auto"}, {watch: "bpf"},
	} {
		name := c.watch
		if c.nobody {
			name += " as nobody"
		}
		t.Run(name, func(t *testing.T) {
			cmd := testwait.Command(t, "/usr/bin/env")
			cmd.Env = []string{"LD_PRELOAD=" + filepath.Join(dir, "libpinwheel.so"), "PINWHEEL_WATCH=" + c.watch,
				"LIBPINWHEEL_CACHES_OFF=FIRST=n:OTHER=0:LAST=a=b", "FIRST=n", "OTHER=1", "LAST=a=b"}
			if root := os.Getuid() == 0; c.nobody && root {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if !c.back {
				w, err := vmwatch.Open(vmwatch.Options{Mechanism: c.watch})
				if err != nil || w.Mechanism() == vmwatch.None {
					t.Skip("nothing is watched here: ", err)
				}
				w.Close()
			}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			has := strings.Split(string(out), "\n")
			if back := !slices.Contains(has, "FIRST=n") && !slices.Contains(has, "LAST=a=b"); back != c.back {
				t.Errorf("taken back: %v, want %v: %q", back, c.back, has)
			}
			if !slices.Contains(has, "OTHER=1") {
				t.Errorf("the user's own variable is gone: %q", has)
			}
		})
	}
}
