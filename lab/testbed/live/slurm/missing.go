package slurm

import (
	"fmt"
	"os"
	"os/exec"
)

// commands are those of Debian's packages slurm-wlm and munge that the tests start.
var commands = []string{"munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo", "squeue"}

// refused is why Isolate could make no namespaces.
var refused error

// Missing says in one line why there can be no cluster here, "" if there can.
func Missing() string {
	if os.Getenv(Variable) == "" {
		return "starts a Slurm cluster: make test-slurm"
	}
	if os.Geteuid() != 0 {
		return "slurmd must be started by root, to have namespaces and control groups of its own"
	}
	for _, name := range commands {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Sprintf("%s is not installed (make install-slurm)", name)
		}
	}
	if refused != nil {
		return fmt.Sprintf("no namespaces: %v", refused)
	}
	return ""
}
