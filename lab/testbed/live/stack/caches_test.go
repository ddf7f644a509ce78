package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wrong are settings that leave a cache on, by the stack, and what is to be said of them.
var wrong = map[string]struct{ setting, says string }{
	"openmpi-ucx": {"UCX_IB_REG_METHODS=rcache,direct",
		"UCX's cache is on, with UCX_RCACHE_ENABLE=n, UCX_IB_REG_METHODS=rcache,direct: "},
	"mpich-ucx": {"UCX_IB_REG_METHODS=rcache,direct",
		"UCX's cache is on, with UCX_RCACHE_ENABLE=n, UCX_IB_REG_METHODS=rcache,direct: "},
	"openmpi-libfabric": {"FI_MR_CACHE_MAX_COUNT=1024",
		"libfabric's cache is on, with FI_MR_CACHE_MAX_COUNT=1024, FI_EFA_MR_MAX_CACHED_COUNT=1: "},
}

// Pinwheel says in the job's output, once, and in the report if the transport keeps registrations although it
// should not. It says nothing under the settings that "pinwheel run" chooses, nor, except in the report, if the user
// wants the cache.
func TestCacheThatIsStillOnIsNoticed(t *testing.T) {
	pinwheel, err := filepath.Abs("../../../../bin/pinwheel")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pinwheel); err != nil {
		t.Skipf("%v (make build)", err)
	}
	for _, s := range All {
		t.Run(s.Name, func(t *testing.T) {
			d, program := need(t, s)
			for _, c := range []struct {
				options, environ []string
				warning, reason  string // "": none
			}{
				{nil, nil, "", ""},
				{nil, []string{wrong[s.Name].setting}, wrong[s.Name].says, wrong[s.Name].says},
				{[]string{"--keep-caches"}, nil, "", "'s cache is on, nothing that would turn it off is set: "},
			} {
				report := filepath.Join(t.TempDir(), "report")
				j := Job{Stack: s, Device: d, Ranks: 2, Program: []string{program, "24", "1048576", "2"}, Environ: c.environ,
					Under: append(append([]string{pinwheel, "run", "--report=" + report}, c.options...), "--")}
				res, err := j.Run(limit)
				if err != nil || res.Status != 0 || !strings.Contains(res.Output, "data right") {
					t.Fatalf("%q: status %d, %v\n%s", c.environ, res.Status, err, res.Output)
				}
				text, err := os.ReadFile(report)
				if err != nil {
					t.Fatal(err)
				}
				const any = "'s cache is on"
				if n := strings.Count(res.Output, any); c.warning == "" && n > 0 ||
					c.warning != "" && (n != 1 || !strings.Contains(res.Output, "pinwheel: "+c.warning)) {
					t.Errorf("%q %q: want the warning %q once in\n%s", c.options, c.environ, c.warning, res.Output)
				}
				if n := strings.Count(string(text), any); c.reason == "" && n > 0 ||
					c.reason != "" && (n != 1 || !strings.Contains(string(text), c.reason)) {
					t.Errorf("%q %q: want the reason %q once in\n%s", c.options, c.environ, c.reason, text)
				}
			}
		})
	}
}
