package placement

import (
	"io/fs"
	"os"
	"slices"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/cgroup"
)

// LookTime is how long a look at the load of a machine has to take: ten ticks of /proc/stat.
const LookTime = 100 * time.Millisecond

// Idle finds idle cores for threads that do some of the program's work for a while, by the rules for the workers of a
// helper, whether there is a helper or not.
type Idle struct {
	root     fs.FS
	topology *Topology
	quota    *cgroup.CPUQuota
	before   map[int]cpuTimes
	claims   func() ([]Claim, error)
}

// LookForIdle begins to look at the load of the machine whose root directory is root. The processors that helpers have
// are what claims returns: on this machine, that is Claims.
func LookForIdle(root fs.FS, claims func() ([]Claim, error)) (*Idle, error) {
	topology, err := ReadTopology(root)
	if err != nil {
		return nil, err
	}
	before, err := readCPUTimes(root)
	if err != nil {
		return nil, err
	}
	i := &Idle{root: root, topology: topology, quota: cgroup.NewCPUQuota(root), before: before, claims: claims}
	i.quota.Left(time.Now()) // the interval begins
	return i, nil
}

// CPUs returns which of the allowed processors may be used, if LookTime has passed since LookForIdle: one of each core
// that was idle, that no helper of another process has, that the administrator keeps free for nobody else, and that is
// not the core of the processor own, which may be helper.AnyCPU. It returns as many as the quotas of the control groups
// leave. Processes of this user that have helpers divide them.
func (i *Idle) CPUs(allowed []int, own int) ([]int, error) {
	after, err := readCPUTimes(i.root)
	if err != nil {
		return nil, err
	}
	claims, err := i.claims()
	if err != nil {
		claims = nil // by the load alone, as a Placer does
	}
	self := Claim{CPU: helper.AnyCPU, Owner: Owner{PID: int32(os.Getpid())}}
	claims = slices.DeleteFunc(claims, func(c Claim) bool { return c.Owner.PID == self.Owner.PID })
	left := i.quota.Left(time.Now())
	v := view{
		topology: i.topology, allowed: present(i.topology.Loud(allowed), after), load: loads(i.before, after), commCPU: own,
		others: claims, self: self, quotaUsedUp: isUsedUp(left, false),
	}
	return v.spares(int(min(left, float64(len(allowed))))), nil
}

// Loud returns the processors of a list without the quiet ones, or all if there are no others: who may use only those
// was bound to them.
func (t *Topology) Loud(list []int) []int {
	loud := slices.DeleteFunc(slices.Clone(list), func(cpu int) bool { return t.cpus[cpu].quiet })
	if len(loud) == 0 {
		return list
	}
	return loud
}
