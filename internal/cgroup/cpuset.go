package cgroup

import (
	"io/fs"

	"pinwheel/internal/cpulist"
)

// CPUSet returns the processors that the cpuset of this process leaves it (cpuset(7)), and the file that says so; ""
// if there is none.
func CPUSet(root fs.FS) (cpus []int, file string) {
	for _, g := range groupsOf(root, "cpuset") {
		name := g.dir + "/cpuset.effective_cpus"
		if g.v2 {
			name = g.dir + "/cpuset.cpus.effective"
		}
		// A group of version 2 that has no cpuset of its own has the one around it.
		if cpus, err := cpulist.Read(root, name); err == nil && len(cpus) > 0 {
			return cpus, "/" + name
		}
	}
	return nil, ""
}
