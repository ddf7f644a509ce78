package helper

import "pinwheel/schedule"

// AnyCPU leaves the choice of a processor to the kernel.
const AnyCPU = -1

// Placement is where a helper runs.
type Placement struct {
	CPU    int  // AnyCPU if it does not matter
	Parked bool // no idle core: the helper must not run
	// Helpers is how many helpers run on this processor, this one included.
	Helpers int
	// Shared says that it is the processor of the rank, which needs it too.
	Shared bool
	// Spare are idle processors besides, on which the helper may register at the same time: the first Spares of
	// them, each of a core that no helper has.
	Spare  [MostWorkers - 1]int
	Spares int
	// QuotaUsedUp says why the helper is parked or shares the core of its rank: its control groups have no
	// processor time left for a core of its own, be that idle or not.
	QuotaUsedUp bool
}

// ShareNs is the n*(t_slice + t_cs) of Li et al., CF'11, equation 2: how long the others on its processor may keep
// a helper waiting, with time slices of sliceNs; 0 on a processor of its own. A rank counts like a helper.
func (p Placement) ShareNs(sliceNs int64) int64 {
	if p.Helpers <= 1 && !p.Shared {
		return 0
	}
	return int64(p.Helpers) * (sliceNs + schedule.SwitchNs)
}
