package settings

import "os"

// Step names the start of several ranks that this process is one of: the same in all of
// them, on all nodes, and different from all others that run. It is "" for a process that is
// no such rank, and where the launcher doesn't tell. It may be a part of a file's name.
func Step() string {
	if namespace := firstOf([]string{"PMIX_NAMESPACE"}, ""); namespace != "" {
		return namespace
	}
	// Hydra's ranks may have inherited the step of a shell (salloc, srun --pty).
	if os.Getenv("MPI_LOCALNRANKS") != "" {
		return ""
	}
	// srun(1), output environment variables.
	job, step := firstOf([]string{"SLURM_JOB_ID"}, ""), firstOf([]string{"SLURM_STEP_ID"}, "")
	if job == "" || step == "" {
		return ""
	}
	return job + "." + step
}
