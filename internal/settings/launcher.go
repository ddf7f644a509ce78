package settings

import (
	"os"
	"strconv"
	"strings"

	"pinwheel/mem"
)

// Variables by which launchers tell a process its rank and its job.
var (
	rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}
	jobVariables  = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}
)

// localRanksVariables tell how many ranks run on this node.
var localRanksVariables = []string{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"}

// ProcessBudgetBytes returns what this process may pin: BudgetBytes, or an
// equal share of NodeBudgetBytes for each rank that the launcher says is on
// this node, whichever is less; Auto if nothing was asked for. Equal shares
// keep the node's sum below its budget at every moment without a word
// between the processes.
func (s Settings) ProcessBudgetBytes() int64 {
	if s.NodeBudgetBytes == Auto || s.NodeBudgetBytes == mem.Unlimited {
		return s.BudgetBytes
	}
	ranks, err := strconv.ParseInt(firstOf(localRanksVariables, "1"), 10, 32)
	if err != nil || ranks < 1 {
		ranks = 1
	}
	share := s.NodeBudgetBytes / ranks
	if s.BudgetBytes == Auto {
		return share
	}
	return min(s.BudgetBytes, share)
}

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
