package slurm

import (
	"slices"

	"pinwheel/lab/testbed/live/stack"
)

// kinds are those of srun --mpi that Debian's MPI libraries know, the best first. MPICH speaks the
// first version of PMI with the plugin for the second.
var kinds = map[string][]string{
	"openmpi": {"pmix", "pmix_v4", "pmix_v3"},
	"mpich":   {"pmi2"},
}

// MPIFor returns the kind of srun --mpi for a stack, "" if this Slurm has none.
func (c *Cluster) MPIFor(s stack.Stack) string {
	for _, kind := range kinds[s.MPI] {
		if slices.Contains(c.MPI, kind) {
			return kind
		}
	}
	return ""
}
