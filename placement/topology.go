package placement

import (
	"cmp"
	"slices"
)

// Topology says which processors are online, what they share and of which kind they are. It is
// immutable.
type Topology struct {
	cpus map[int]cpuInfo
}

type cpuInfo struct {
	core   []int // processors of the same core, itself included
	l2, l3 []int // processors that share the cache; empty where unknown
	node   []int // processors of the same NUMA node; empty where unknown
	socket int
	kind   Kind
	quiet  bool // kept free of other work: isolcpus, cpuset partitions, nohz_full
}

// Kind is what a machine with cores of different speed built a core for.
type Kind uint8

// Kinds. Where all cores are equal they are Performance cores.
const (
	Performance Kind = iota
	Efficient
)

// Distance is how far apart two processors are, by what they share.
type Distance int

// Distances, nearest first.
const (
	SameCPU Distance = iota
	SameCore
	SharedL2
	SharedL3
	SameNode // and the same package
	SamePackage
	OtherPackage
)

// Online returns the processors in ascending order.
func (t *Topology) Online() []int {
	all := make([]int, 0, len(t.cpus))
	for cpu := range t.cpus {
		all = append(all, cpu)
	}
	slices.Sort(all)
	return all
}

// Core returns the processors of a processor's core, itself included, in
// ascending order.
func (t *Topology) Core(cpu int) []int {
	if c, ok := t.cpus[cpu]; ok {
		return c.core
	}
	return []int{cpu}
}

// Kind returns the kind of a processor's core.
func (t *Topology) Kind(cpu int) Kind { return t.cpus[cpu].kind }

// Quiet returns the processors that the administrator keeps free of other work, in ascending order.
func (t *Topology) Quiet() []int {
	return slices.DeleteFunc(t.Online(), func(cpu int) bool { return !t.cpus[cpu].quiet })
}

// Distance returns how far apart two processors are.
func (t *Topology) Distance(a, b int) Distance {
	ca, ok := t.cpus[a]
	cb, ok2 := t.cpus[b]
	switch {
	case a == b:
		return SameCPU
	case !ok || !ok2:
		return OtherPackage
	case slices.Contains(ca.core, b):
		return SameCore
	case slices.Contains(ca.l2, b):
		return SharedL2
	case slices.Contains(ca.l3, b):
		return SharedL3
	case ca.socket != cb.socket:
		return OtherPackage
	case slices.Contains(ca.node, b):
		return SameNode
	default:
		return SamePackage
	}
}

// sortForHelper puts the best processor for the helper of a thread on processor comm, or AnyCPU, first:
//
//  1. Quiet processors come last. A helper there wakes the ticks that they were freed of.
//  2. The nearest comes first. The helper reads the DQ that the thread writes, and writes the cache that it reads.
//  3. Of those that are equally near, efficient cores come first. The kernel puts the next busy thread
//     on a fast core, where it would meet the helper. The helper sleeps most of the time, and it plans
//     registrations by what they took, so a slower core makes it begin a little earlier.
func (t *Topology) sortForHelper(cpus []int, comm int) {
	slices.SortStableFunc(cpus, func(a, b int) int {
		return cmp.Or(
			compareBool(t.cpus[a].quiet, t.cpus[b].quiet),
			cmp.Compare(t.Distance(comm, a), t.Distance(comm, b)),
			-cmp.Compare(t.Kind(a), t.Kind(b)),
		)
	})
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
