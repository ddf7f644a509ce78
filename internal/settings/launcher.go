package settings

import (
	"os"
	"strconv"
	"strings"
)

// Variables by which launchers tell a process its rank and its job.
var (
	rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}
	jobVariables  = []string{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "OMPI_MCA_ess_base_jobid"}
)

// localRanksVariables tell how many ranks run on this node, sizeVariables how
// many there are on all nodes. SLURM_STEP_TASKS_PER_NODE tells it of every node; see
// ranksOfNode.
var (
	localRanksVariables = []string{
		"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE",
	}
	sizeVariables = []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}
)

// LocalRanks is how many processes of a job share the node with this one, as
// the launcher has it: at least 1, and rather too many than too few.
func LocalRanks() int64 {
	return max(1, firstCount(
		firstOf(localRanksVariables, ""),
		ranksOfNode(os.Getenv("SLURM_STEP_TASKS_PER_NODE"), os.Getenv("SLURM_NODEID")),
		firstOf(sizeVariables, ""),
	))
}

// Ranks is how many ranks the job has on all nodes, as the launcher has it; 0: not known.
func Ranks() int { return int(firstCount(firstOf(sizeVariables, ""))) }

// firstCount returns the first text that is a positive number; 0 if none is.
func firstCount(texts ...string) int64 {
	for _, s := range texts {
		if n, err := strconv.ParseInt(s, 10, 32); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// ranksOfNode reads "4(x2),3": two nodes with 4 ranks each, then one with 3
// (srun(1), output environment variables). It returns "" where that isn't known.
func ranksOfNode(list, node string) string {
	at, err := strconv.Atoi(node)
	if err != nil || at < 0 {
		return ""
	}
	for _, group := range strings.Split(list, ",") {
		ranks, times, repeated := strings.Cut(group, "(x")
		n := 1
		if repeated {
			if n, err = strconv.Atoi(strings.TrimSuffix(times, ")")); err != nil {
				return ""
			}
		}
		if at < n {
			return ranks
		}
		at -= n
	}
	return ""
}

// World names the MPI_COMM_WORLD of a process that MPI_Comm_spawn has started,
// among those of its job: their ranks are numbered from 0 in each. It is Open MPI's
// number, which begins with 2; with other launchers the process that
// has started those of this node, as they have one for each.
func World() string {
	namespace := os.Getenv("PMIX_NAMESPACE")
	if _, number, found := strings.Cut(namespace, "@"); found { // PRRTE
		namespace = number
	}
	if n, err := strconv.ParseUint(namespace, 10, 32); err == nil {
		return strconv.FormatUint(n&0xffff, 10) // above it Open MPI 4 has that of the job
	}
	return strconv.Itoa(os.Getppid())
}

// Expand replaces %h by the host's name, %p by the process ID, %r by the MPI
// rank, with World and a dash before it in processes that MPI_Comm_spawn has
// started, %j by the batch job and %% by %. What is not known becomes "0", the
// rank the process ID, so that files of different ranks never meet. Other
// characters after % are left alone.
func Expand(pattern string) string {
	return ExpandRank(pattern, firstOf(rankVariables, strconv.Itoa(os.Getpid())))
}

// ExpandRank is Expand where the rank is known better than from the launcher.
func ExpandRank(pattern, rank string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "0"
	}
	pid := strconv.Itoa(os.Getpid())
	return strings.NewReplacer("%%", "%", "%h", host, "%p", pid,
		"%r", rank, "%j", firstOf(jobVariables, "0")).Replace(pattern)
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
