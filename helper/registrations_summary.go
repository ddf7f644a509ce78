package helper

import (
	"iter"
	"math"
)

// critical is the entry that sets the latest start of what the helper does by itself.
type critical struct {
	dueNs int64
	work  work // up to this entry, with it; 0: there is none
}

// scaleSteps is how many scales between 0 and 1 are told apart. A smaller difference is a rounding error. It would let
// the later of two equal entries win.
const scaleSteps = 1 << 30

// scale is the scale of the estimate, rounded.
func (p *planning) scale() float64 { return math.Round(p.register.scale()*scaleSteps) / scaleSteps }

// latest returns the entry that sets the latest start of what the helper does by itself.
func (t *dueTree) latest(by *planning) critical {
	if aside := by.workers > 1; t.aside != aside {
		t.aside = aside
		for i := range t.nodes {
			t.nodes[i].changed()
		}
	}
	if t.root == 0 {
		return critical{}
	}
	t.summarize(t.root, by, by.scale())
	return t.nodes[t.root].critical
}

// summarize renews the summaries that do not hold for a scale.
func (t *dueTree) summarize(at uint32, by *planning, scale float64) {
	n := &t.nodes[at]
	if n.above < scale && scale <= n.upTo {
		return
	}
	n.own, n.long, n.critical = work{}, 0, critical{}
	n.above, n.upTo = math.Inf(-1), math.Inf(1)
	if n.left != 0 {
		t.summarize(n.left, by, scale)
		n.append(&t.nodes[n.left], by, scale)
	}
	if longAbove := by.longAbove(n.pages); scale > longAbove {
		n.above = max(n.above, longAbove)
		n.long++
	} else {
		n.upTo = min(n.upTo, longAbove)
		n.own = n.own.plus(work{n.pages, 1})
		n.contend(critical{n.dueNs, n.own}, by, scale)
	}
	if n.right != 0 {
		t.summarize(n.right, by, scale)
		n.append(&t.nodes[n.right], by, scale)
	}
}

// append extends a summary by that of a later subtree.
func (n *dueNode) append(m *dueNode, by *planning, scale float64) {
	n.above, n.upTo = max(n.above, m.above), min(n.upTo, m.upTo)
	if m.own.n > 0 {
		n.contend(critical{m.critical.dueNs, n.own.plus(m.critical.work)}, by, scale)
	}
	n.own = n.own.plus(m.own)
	n.long += m.long
}

// longs is what is for workers. Like all below, it follows latest.
func (t *dueTree) longs() work { return t.all.minus(t.nodes[t.root].own) }

// firstOwn returns the first entry that the helper does by itself, nil if there is none.
func (t *dueTree) firstOwn() *dueNode {
	if !t.aside {
		return t.first()
	}
	for n := range t.ownOnes() {
		return n
	}
	return nil
}

// ownOnes iterates over the entries that the helper does by itself, the earliest first, and longOnes over those for
// workers. They don't look at the others.
func (t *dueTree) ownOnes() iter.Seq[*dueNode] {
	return func(yield func(*dueNode) bool) { t.ascendSome(t.root, (*dueNode).owns, yield) }
}

func (t *dueTree) longOnes() iter.Seq[*dueNode] {
	return func(yield func(*dueNode) bool) { t.ascendSome(t.root, (*dueNode).longs, yield) }
}

func (n *dueNode) owns() int  { return n.own.n }
func (n *dueNode) longs() int { return n.long }

// ascendSome iterates over the entries of a kind in a subtree, of which count tells how many there are.
func (t *dueTree) ascendSome(at uint32, count func(*dueNode) int, yield func(*dueNode) bool) bool {
	n := &t.nodes[at]
	all := count(n)
	if all == 0 {
		return true
	}
	isOne := all > count(&t.nodes[n.left])+count(&t.nodes[n.right])
	return t.ascendSome(n.left, count, yield) && (!isOne || yield(n)) && t.ascendSome(n.right, count, yield)
}

// contend lets a later entry take the place of the critical one if it makes the start earlier. Of two equals, the
// earlier one stays.
func (n *dueNode) contend(later critical, by *planning, scale float64) {
	if n.critical.work.n == 0 {
		n.critical = later
		return
	}
	more := later.work.minus(n.critical.work)
	marginNs := float64(later.dueNs - n.critical.dueNs - int64(more.n)*by.itemNs)
	var wins float64 // from which scale on
	switch moreNs := by.register.model(more.pages, more.n); {
	case moreNs > 0:
		wins = marginNs / moreNs
	case marginNs < 0:
		wins = math.Inf(-1)
	default:
		wins = math.Inf(1)
	}
	if scale > wins {
		n.critical = later
		n.above = max(n.above, wins)
	} else {
		n.upTo = min(n.upTo, wins)
	}
}

// changed notes that a subtree has changed.
func (n *dueNode) changed() { n.above, n.upTo = math.Inf(1), math.Inf(-1) }
