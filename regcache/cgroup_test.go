package regcache

import (
	"testing"
	"testing/fstest"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestCgroupLimitIsTheSmallestOnTheWayToTheRoot(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"no cgroups": {fstest.MapFS{}, mem.Unlimited},
		"v2, job inside slice": {fstest.MapFS{"proc/self/cgroup": file("0::/slurm/job_7/step_0\n"),
			"sys/fs/cgroup/slurm/job_7/step_0/memory.max": file("max\n"), "sys/fs/cgroup/slurm/job_7/memory.max": file("4000\n"),
			"sys/fs/cgroup/slurm/memory.max": file("8000\n")}, 3000},
		"v1": {fstest.MapFS{"proc/self/cgroup": file("9:pids:/x\n4:cpu,memory:/docker/1\n0::/\n"),
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": file("1000\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712\n")}, 750},
		"v1 without a limit": {fstest.MapFS{"proc/self/cgroup": file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, mem.Unlimited},
		"garbage": {fstest.MapFS{"proc/self/cgroup": file("x\n4:memory:/..\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("many")}, mem.Unlimited},
	} {
		if got := CgroupLimit(c.files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestLimitsDefaultToTheProviders(t *testing.T) {
	fx := newFixture(t, sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(8 * mem.PageSize), MaxRegions: 3}}, Options{})
	if fx.limits != (Limits{int64(8 * mem.PageSize), 3}) {
		t.Errorf("%+v", fx.limits)
	}
}
