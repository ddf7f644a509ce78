package slurm

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// configuration is slurm.conf(5) of a cluster with one node. Nobody else has its network, so
// the ports are the usual ones. node is the line that slurmd -C prints of this machine.
func configuration(node, dir string, c confinement) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(node, "NodeName="), " ")
	return fmt.Sprintf(`ClusterName=pinwheel
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/slurmd.pid
ProctrackType=%[4]s
TaskPlugin=%[5]s
TaskProlog=%[3]s/%[6]s
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
TmpFS=%[3]s
%[2]s NodeAddr=127.0.0.1 State=UNKNOWN
PartitionName=shared Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES:4 State=UP
PartitionName=%[7]s Nodes=ALL MaxTime=INFINITE OverSubscribe=EXCLUSIVE State=UP
`, name, node, dir, c.proctrack, c.task, prologName, Whole)
}

// Whole is the partition (SLURM_PARTITION) in which a job gets all processors of the node. By default it gets as
// many as it asks for, and with --overcommit that is one.
const Whole = "whole"

// prologName is the TaskProlog of all jobs: see Cluster.SetTaskProlog.
const prologName = "task-prolog"

// confinement is how Slurm follows the processes of a job and keeps them to its processors.
type confinement struct {
	proctrack, task string
	groups          string // cgroup.conf(5), "" if there are none
	says            string // for people
}

var byAffinity = confinement{
	proctrack: "proctrack/linuxproc", task: "task/affinity",
	says: "by affinity masks (task/affinity), without control groups",
}

const groupRoot = "/sys/fs/cgroup"

// confinements are those that this machine may permit, the best first.
func confinements() []confinement {
	groups := confinement{
		proctrack: "proctrack/cgroup", task: "task/cgroup,task/affinity",
		says: "by control groups of version 1: freezer and cpuset (proctrack/cgroup, task/cgroup)",
		groups: "CgroupPlugin=cgroup/v1\nCgroupMountpoint=" + groupRoot + "\nCgroupAutomount=no\n" +
			"ConstrainCores=yes\nConstrainRAMSpace=no\nConstrainDevices=no\n",
	}
	if canWrite(groupRoot+"/freezer") && canWrite(groupRoot+"/cpuset") {
		return []confinement{groups, byAffinity}
	}
	if _, err := os.Stat(groupRoot + "/cgroup.controllers"); err == nil && canWrite(groupRoot) {
		groups.says = "by control groups of version 2 (proctrack/cgroup, task/cgroup)"
		groups.groups = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainCores=yes\n"
		return []confinement{groups, byAffinity}
	}
	return []confinement{byAffinity}
}

func canWrite(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
