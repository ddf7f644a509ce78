package settings

import (
	"os"
	"strconv"
	"strings"
)

// Variables by which launchers tell a process its rank and its job.
var (
	rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}
	jobVariables  = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}
)

// Expand replaces %h by the host's name, %p by the process ID, %r by the MPI
// rank, %j by the batch job and %% by %. What is not known becomes "0", the
// rank the process ID, so that files of different ranks never meet. Other
// characters after % are left alone.
func Expand(pattern string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "0"
	}
	pid := strconv.Itoa(os.Getpid())
	return strings.NewReplacer("%%", "%", "%h", host, "%p", pid,
		"%r", firstOf(rankVariables, pid), "%j", firstOf(jobVariables, "0")).Replace(pattern)
}

// firstOf returns the first variable that is set and could be part of a file name.
func firstOf(variables []string, otherwise string) string {
	for _, v := range variables {
		if s := os.Getenv(v); s != "" && !strings.ContainsRune(s, os.PathSeparator) {
			return s
		}
	}
	return otherwise
}
