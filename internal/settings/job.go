package settings

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
)

// jobKinds name the batch system or launcher of each of the jobVariables.
var jobKinds = map[string]string{
	"SLURM_JOB_ID": "slurm", "PBS_JOBID": "pbs", "LSB_JOBID": "lsf", "JOB_ID": "sge", "OMPI_MCA_ess_base_jobid": "ompi",
}

// maxJob is the most that fits into the name of a socket of internal/node.
const maxJob = 48

// Job names the job that this process belongs to, in the same way in all of its processes on
// this node: by the batch job; else by the run of Open MPI, with all worlds that it spawns; else,
// under Hydra, by its proxy on this node; else by the session (setsid(2)), so that processes
// started by one shell or one service are together. It consists of letters, digits and "-._:".
func Job() string {
	for _, v := range jobVariables {
		if value := firstOf([]string{v}, ""); value != "" {
			return jobName(jobKinds[v], familyOf(v, value))
		}
	}
	if namespace := os.Getenv("PMIX_NAMESPACE"); namespace != "" {
		run, _, _ := strings.Cut(namespace, "@") // PRRTE numbers its worlds after it
		return jobName("ompi", familyOf("PMIX_NAMESPACE", run))
	}
	if pid, found := proxy(os.Getpid()); found {
		return jobName("hydra", fmt.Sprintf("%d-%d", pid, started(pid)))
	}
	session, err := unix.Getsid(0)
	if err != nil {
		session = os.Getpid()
	}
	return jobName("session", fmt.Sprintf("%d-%d", session, started(session)))
}

// familyOf returns what the worlds of one run of Open MPI 4 have in common: their numbers have that
// of the run in the upper 16 bits. Other values stay.
func familyOf(variable, value string) string {
	if n, err := strconv.ParseUint(value, 10, 32); err == nil &&
		(variable == "OMPI_MCA_ess_base_jobid" || variable == "PMIX_NAMESPACE") {
		return strconv.FormatUint(n>>16, 10)
	}
	return value
}

func jobName(kind, id string) string {
	name := kind + "-" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-._:", r) {
			return r
		}
		return '-'
	}, id)
	if len(name) > maxJob {
		h := fnv.New64a()
		h.Write([]byte(name))
		name = fmt.Sprintf("%s-%016x", kind, h.Sum64())
	}
	return name
}

// proxy returns the ancestor that is Hydra's proxy. Only ranks look for it: a program that they
// start with another launcher is a job of its own.
func proxy(pid int) (int, bool) {
	if os.Getenv("PMI_RANK") == "" && os.Getenv("PMI_ID") == "" {
		return 0, false
	}
	for range 32 { // shells and wrappers may be between the two
		p, err := machine.ReadProcess(pid)
		if err != nil {
			return 0, false
		}
		if p.Name == "hydra_pmi_proxy" {
			return pid, true
		}
		pid = p.Parent
	}
	return 0, false
}

// started returns when a process started, or 0: process numbers return.
func started(pid int) uint64 {
	p, _ := machine.ReadProcess(pid) // zero is as good as any
	return p.StartTicks
}

// Rank returns the rank of this process as its launcher has it, or -1.
func Rank() int {
	if rank, err := strconv.ParseInt(firstOf(rankVariables, ""), 10, 32); err == nil && rank >= 0 {
		return int(rank)
	}
	return -1
}
