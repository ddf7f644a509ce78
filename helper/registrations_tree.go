package helper

import (
	"iter"

	"pinwheel/mem"
)

// dueTree is what RQ has to register soon, by (deadline, region), and knows the latest start that makes all of it
// ready in time. put, remove and latest take O(log n) expected time. Nothing is allocated once the tree has reached
// its largest size. It belongs to one goroutine, and must not be changed while it is iterated.
//
// It is a treap (Seidel and Aragon, Algorithmica 16, 1996) of our own, because we know of no released Go module with an
// ordered tree whose nodes carry a summary of their subtree. google/btree has no place for one.
//
// The summary is the entry that sets the latest start when the subtree is registered back to back: its deadline is the
// least after the costs of all up to it are taken off. The costs follow every measured registration by one common
// factor, the scale. The later of two entries has the higher costs, so it sets the start from some scale on. Each node
// knows between which scales its summary holds. A new scale renews only the nodes where another entry wins, as in the
// kinetic tournaments of Basch, Guibas and Hershberger (SODA 1997). With workers, the summary leaves out what is long
// enough for them, which also depends on the scale.
type dueTree struct {
	nodes []dueNode // 0 stands for none
	root  uint32
	least uint32 // the first entry
	free  uint32 // a list, by left
	all   work   // that is queued
	aside bool   // the summaries leave out what is for a worker
}

// work is what registrations take.
type work struct {
	pages uint64
	n     int
}

func (w work) plus(v work) work  { return work{w.pages + v.pages, w.n + v.n} }
func (w work) minus(v work) work { return work{w.pages - v.pages, w.n - v.n} }

type dueNode struct {
	r           *region
	id          mem.RegionID
	dueNs       int64
	pages       uint64
	left, right uint32
	priority    uint32

	// Of the subtree, as of the last summary.
	own         work // what the helper does by itself, without workers all
	long        int  // for a worker
	critical    critical
	above, upTo float64 // the scales for which the summary holds; none: the subtree has changed
}

func newDueTree() dueTree {
	return dueTree{nodes: make([]dueNode, 1)}
}

// put sets the deadline and the size of a region, which it inserts or moves.
func (t *dueTree) put(r *region, dueNs int64, pages uint64) {
	if n := t.get(r); n != nil {
		if n.dueNs == dueNs && n.pages == pages {
			return
		}
		t.remove(r)
	}
	n := t.free
	if n != 0 {
		t.free = t.nodes[n].left
	} else {
		n = uint32(len(t.nodes))
		t.nodes = append(t.nodes, dueNode{})
	}
	t.nodes[n] = dueNode{r: r, id: r.id, dueNs: dueNs, pages: pages, priority: priorityOf(r.id)}
	t.nodes[n].changed()
	r.inTree = n
	t.all = t.all.plus(work{pages, 1})
	t.root = t.insert(t.root, n)
	if t.least == 0 || t.nodes[n].before(&t.nodes[t.least]) {
		t.least = n
	}
}

// remove drops a region and reports whether it was there.
func (t *dueTree) remove(r *region) bool {
	n := r.inTree
	if n == 0 {
		return false
	}
	r.inTree = 0
	t.all = t.all.minus(work{t.nodes[n].pages, 1})
	t.root = t.take(t.root, n)
	t.nodes[n] = dueNode{left: t.free}
	t.free = n
	if n == t.least {
		for t.least = t.root; t.nodes[t.least].left != 0; {
			t.least = t.nodes[t.least].left
		}
	}
	return true
}

// get returns the entry of a region, nil if there is none. It is valid until the tree changes.
func (t *dueTree) get(r *region) *dueNode {
	if r.inTree == 0 {
		return nil
	}
	return &t.nodes[r.inTree]
}

// first returns the entry with the earliest deadline, nil if there is none. It is valid until the tree changes.
func (t *dueTree) first() *dueNode {
	if t.least == 0 {
		return nil
	}
	return &t.nodes[t.least]
}

// from iterates over the entries with this deadline or a later one, the earliest first.
func (t *dueTree) from(dueNs int64) iter.Seq[*dueNode] {
	return func(yield func(*dueNode) bool) { t.ascend(t.root, dueNs, yield) }
}

func (t *dueTree) ascend(at uint32, fromNs int64, yield func(*dueNode) bool) bool {
	if at == 0 {
		return true
	}
	n := &t.nodes[at]
	return (n.dueNs < fromNs || t.ascend(n.left, fromNs, yield) && yield(n)) && t.ascend(n.right, fromNs, yield)
}

func (n *dueNode) before(m *dueNode) bool {
	return n.dueNs < m.dueNs || n.dueNs == m.dueNs && n.id < m.id
}

// priorityOf orders the nodes from the root down as if at random, by the finalizing step of MurmurHash3. So the shape
// depends only on the entries.
func priorityOf(id mem.RegionID) uint32 {
	x := uint64(id)
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return uint32(x >> 32)
}

func (t *dueTree) insert(at, n uint32) uint32 {
	if at == 0 {
		return n
	}
	a, b := &t.nodes[at], &t.nodes[n]
	switch {
	case b.priority > a.priority:
		b.left, b.right = t.split(at, b)
		return n
	case b.before(a):
		a.left = t.insert(a.left, n)
	default:
		a.right = t.insert(a.right, n)
	}
	a.changed()
	return at
}

// split splits a subtree into what comes before an entry and what comes after it.
func (t *dueTree) split(at uint32, by *dueNode) (left, right uint32) {
	if at == 0 {
		return 0, 0
	}
	a := &t.nodes[at]
	a.changed()
	if a.before(by) {
		a.right, right = t.split(a.right, by)
		return at, right
	}
	left, a.left = t.split(a.left, by)
	return left, at
}

// take takes a node out of a subtree.
func (t *dueTree) take(at, n uint32) uint32 {
	a, b := &t.nodes[at], &t.nodes[n]
	switch {
	case at == n:
		return t.join(a.left, a.right)
	case b.before(a):
		a.left = t.take(a.left, n)
	default:
		a.right = t.take(a.right, n)
	}
	a.changed()
	return at
}

// join joins two subtrees, of which one lies before the other.
func (t *dueTree) join(left, right uint32) uint32 {
	l, r := &t.nodes[left], &t.nodes[right]
	switch {
	case left == 0:
		return right
	case right == 0:
		return left
	case l.priority > r.priority:
		l.right = t.join(l.right, right)
		l.changed()
		return left
	default:
		r.left = t.join(left, r.left)
		r.changed()
		return right
	}
}
