package launch

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func init() { devices = nil } // plans are the same on a machine with accelerators

func TestHooksOfUCXGoWithItsCachesOnly(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		environ string
		device  string
		want    bool
	}{
		{"", none, true},
		{"UCX_TLS=self,sm,rc", none, true},
		{"UCX_TLS=^cuda", none, true},
		{"UCX_KNEM_RCACHE=n", none, true},
		{"UCX_IB_REG_METHODS=rcache,direct", none, false}, // the user's cache needs them
		{"UCX_RCACHE_ENABLE=y", none, false},
		{"UCX_KNEM_RCACHE=y", none, false},
		{"UCX_MEMTYPE_CACHE=y", none, false},
		{"UCX_TLS=rc,cuda_copy", none, false},
		{"UCX_MEM_EVENTS=y", none, false}, // is kept
		{"", t.TempDir(), false},          // an accelerator
	} {
		t.Run(c.environ, func(t *testing.T) {
			before := devices
			devices = []string{c.device}
			t.Cleanup(func() { devices = before })
			vars, _ := turnCachesOff(strings.Fields("HOME=/ " + c.environ))
			if got := slices.Contains(vars, variable{"UCX_MEM_EVENTS", "n"}); got != c.want {
				t.Errorf("turned off: %v", got)
			}
		})
	}
}
