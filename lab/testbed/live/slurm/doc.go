// Package slurm runs a Slurm cluster of one node, this machine, for tests:
// munged, slurmctld and slurmd of Debian's packages.
//
// Everything happens in namespaces of its own (Isolate): processes, network,
// mounts, and a /run and a /dev/shm that begin empty. So the cluster meets no other,
// and the kernel ends all of it with the first process of the namespace, however
// that ends. Only control groups outlive them. The process outside removes those, unless it is
// killed (SIGKILL): then directories without processes stay below /sys/fs/cgroup.
//
// # Caveats
//
// It needs root. Without systemd, Slurm keeps jobs to their processors only where the
// control groups can be written (Cluster.Confinement).
package slurm
