package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/fault"
	"pinwheel/internal/node"
	"pinwheel/mem"
	"pinwheel/regcache"
)

// NodeOptions say how a process takes part in its job on this node.
type NodeOptions struct {
	Job  string // settings.Job
	Rank int    // -1: unknown
	// BudgetBytes is what all ranks of the job on this node may pin together; mem.Unlimited for no
	// bound. Ranks is how many there are.
	BudgetBytes, Ranks int64
	Group              *regcache.Group // of all caches of the process
	Settle             func()          // called once a second, before shares are settled; nil: nothing to do
}

// member is an engine's part in its job: it publishes what the process does, and settles its
// share of the budget, once a second on a goroutine of its own.
type member struct {
	*node.Member
	opt       NodeOptions
	once      sync.Once
	ended     chan struct{} // closed by stop
	done      chan struct{} // closed by follow
	followed  bool          // follow was started
	peakBytes int64         // of what was published, which the transport's own registrations may belong to
}

// JoinNode makes the process a member of its job on this node: the node's budget bounds the group,
// unless another engine has done that, and the helper may claim processors. If it fails it warns,
// and the process goes on alone with its equal part of the budget. Before StartHelper.
func (e *Engine) JoinNode(o NodeOptions) {
	if o.Group.HasShare() {
		o.BudgetBytes = mem.Unlimited
	}
	no := node.Options{
		Job: o.Job, Rank: o.Rank, BudgetBytes: o.BudgetBytes, Ranks: o.Ranks,
		Warn: func(err error) { e.Warn("node", err.Error()+"; "+alone) },
	}
	m, err := join(no)
	part := no.Part()
	if err != nil {
		e.Warn("node", fmt.Sprintf("%v; %s", err, alone))
		if part != mem.Unlimited {
			o.Group.SetShare(equalPart(part))
		}
	}
	if errors.Is(err, node.ErrBudget) { // its helper may yet agree with the others on cores
		no.BudgetBytes, o.BudgetBytes = mem.Unlimited, mem.Unlimited
		m, err = join(no)
	}
	if err != nil {
		return
	}
	if o.BudgetBytes != mem.Unlimited {
		o.Group.SetShare(m)
	}
	e.node = &member{Member: m, opt: o, ended: make(chan struct{}), done: make(chan struct{})}
}

func join(o node.Options) (m *node.Member, err error) {
	err = fault.Contain(func() (err error) { m, err = node.Join(o); return err })
	return m, err
}

// FollowNode begins to publish what the process does. It comes once, after JoinNode and StartHelper.
func (e *Engine) FollowNode() {
	if e.node != nil {
		e.node.followed = true
		go e.follow(e.node)
	}
}

const alone = "this process keeps to its equal part of PINWHEEL_NODE_BUDGET, if there is one"

// equalPart is the share of a process that is alone.
type equalPart int64

func (p equalPart) Most() int64                 { return int64(p) }
func (p equalPart) Grow(int64) int64            { return int64(p) }
func (p equalPart) Shrink(int64) int64          { return int64(p) }
func (p equalPart) Await(int64) bool            { return false }
func (p equalPart) Settle(int64) (int64, int64) { return int64(p), int64(p) }

// LeaveNode leaves the job and gives the share back, unless bytes are still registered and the node has a budget: they
// count against it until the process ends. It may be called more than once.
func (e *Engine) LeaveNode(bytes int64) {
	if e.node == nil {
		return
	}
	e.node.stop()
	g, shares := e.node.opt.Group, e.node.opt.BudgetBytes != mem.Unlimited
	if shares && bytes > 0 {
		g.GiveBack()
		return
	}
	if shares {
		g.SetShare(nil)
	}
	_ = e.node.Close() // it does not fail
}

// Node returns this process as a member of its job; nil if it is alone.
func (e *Engine) Node() *node.Member { return e.node.joined() }

// joined returns the member for a Placer; nil if this process is alone.
func (m *member) joined() *node.Member {
	if m == nil {
		return nil
	}
	return m.Member
}

// stop ends the goroutine.
func (m *member) stop() {
	if m != nil && m.followed {
		m.once.Do(func() { close(m.ended) })
		<-m.done
	}
}

// followEvery is how often a process publishes what it does.
const followEvery = time.Second

func (e *Engine) follow(m *member) {
	defer close(m.done)
	ticks := time.NewTicker(followEvery)
	defer ticks.Stop()
	var before int64
	for {
		late := e.meter.lateWaitNs()
		demandNs := late - before
		before = late
		if err := fault.Contain(func() error { e.look(m, demandNs); return nil }); err != nil {
			e.Warn("node", fmt.Sprintf("%v; %s", err, alone))
			return
		}
		select {
		case <-m.ended:
			return
		case <-ticks.C:
		}
	}
}

// look publishes the state of the process and settles its share. A process that has communicated nothing large has
// nothing to say.
func (e *Engine) look(m *member, demandNs int64) {
	s := e.state(m.opt.Group, demandNs)
	m.peakBytes = max(m.peakBytes, s.PeakBytes, s.PinnedBytes)
	s.PeakBytes = m.peakBytes
	if s.Hits+s.First+s.Late > 0 {
		m.Publish(s)
	}
	if m.opt.Settle != nil {
		m.opt.Settle()
	}
	m.opt.Group.SettleShare()
}

// state is what the process has done so far. demandNs is what late registrations have cost in the last second.
func (e *Engine) state(g *regcache.Group, demandNs int64) node.State {
	c, accuracy := g.Counts(), e.Accuracy()
	peak, _ := e.Pinned()
	s := node.State{
		PinnedBytes: c.Pinned.Bytes, PeakBytes: peak, DemandNs: demandNs,
		Hits: int64(c.Hits), First: int64(c.First), Late: int64(c.LateUses()), StallNs: e.meter.waitNs(),
		Predicted: accuracy.N, Within05: accuracy.Below05, Within5: accuracy.Below5,
		Helper: node.Helper{CPU: helper.AnyCPU}, Cost: node.Cost(e.Cost()),
	}
	if h := e.HelperStats(); e.helper != nil {
		at := e.meter.placement()
		s.Helper = node.Helper{
			Running: !h.Faulted, CPU: at.CPU, Parked: at.Parked, Shared: at.Shared,
			CPUNs: h.CPUNs, ActionNs: h.ActionNs,
			Wakeups: h.Wakeups, Registers: h.Registers, Deregs: h.Deregs,
		}
		if at.Shared {
			s.Helper.ShareLimit = e.cost
		}
	}
	return s
}

// placement is where the helper was put last.
func (m *meter) placement() helper.Placement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// waitNs is how long communication has waited for all that was no hit.
func (m *meter) waitNs() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stallNs
}

// lateWaitNs is how long communication has waited for late registrations.
func (m *meter) lateWaitNs() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lateNs
}
