package prefault

import (
	"slices"

	"pinwheel/placement"
)

// queuesOf sorts parts by the NUMA nodes on which their pages are to lie. A part that may lie on several, or on one
// without a usable processor, is for all.
func queuesOf(o *Options, usable []int, parts []part) []*queue {
	all := &queue{cpus: usable}
	nodes := placement.ReadNodes(o.root)
	if len(nodes) < 2 {
		all.left = parts
		return []*queue{all}
	}
	byNode := map[int]*queue{}
	queues := []*queue{all}
	for n, list := range nodes {
		if cpus := common(list, usable); len(cpus) > 0 {
			byNode[n] = &queue{cpus: cpus}
			queues = append(queues, byNode[n])
		}
	}
	own := nodeOf(nodes, o.CPU)
	for _, p := range parts {
		q := all
		switch to := o.policy(p.Start); {
		case len(to) == 0 && byNode[own] != nil:
			q = byNode[own]
		case len(to) == 1 && byNode[to[0]] != nil:
			q = byNode[to[0]]
		}
		q.left = append(q.left, p)
	}
	return queues
}

// nodeOf returns the node of a processor, -1 if it is not known.
func nodeOf(nodes map[int][]int, cpu int) int {
	for n, list := range nodes {
		if slices.Contains(list, cpu) {
			return n
		}
	}
	return -1
}
