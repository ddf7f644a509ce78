package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"pinwheel/helper"
	"pinwheel/placement"
)

// IdleCores are the cores of each node that no rank computes on. The helpers of its ranks share
// them under the policies of package placement: as in a placement.Placer, every helper looks at the load of
// the cores and at the claims of the others once a second, in order of rank.
//
// Until its first look a helper runs on whichever idle core has least to do, as the kernel would
// have it. Without idle cores there are no helpers from the start (Li et al., CF'11, section 5). Under
// Options.HelperShare and policy auto, a rank of policy pinwheel without one is served on demand.
type IdleCores struct {
	PerNode    int
	Policy     string // as PINWHEEL_IDLE_POLICY: auto if empty
	SliceNs    int64  // time slice of helpers on one core, t_slice of Li et al., equation 2; 3 ms
	IntervalNs int64  // between two looks; 1 s
}

func (c *IdleCores) withDefaults() *IdleCores {
	d := *c
	d.Policy = cmp.Or(d.Policy, "auto")
	d.SliceNs = cmp.Or(d.SliceNs, 3_000_000)
	d.IntervalNs = cmp.Or(d.IntervalNs, 1_000_000_000)
	return &d
}

func (c *IdleCores) check() error {
	if c.PerNode < 0 || c.SliceNs < 0 || c.IntervalNs < 0 {
		return errors.New("idle cores, their time slice and the time between two looks must not be negative")
	}
	if _, err := placement.ParseIdlePolicy(c.Policy); err != nil {
		return fmt.Errorf("unknown idle policy %q (choose from auto, conservative, aggressive, off)", c.Policy)
	}
	return nil
}

// Sharing is what a replay with IdleCores says of the helpers of a rank, or of several.
type Sharing struct {
	IdleCores    int    `json:"idle_cores"` // of each node
	IdlePolicy   string `json:"idle_policy"`
	HelperWaitNs int64  `json:"helper_wait_ns"` // of helpers that had something to do, for their core
	HelperMoves  int64  `json:"helper_moves"`   // to another core, to none, or from none
	HelpedNs     int64  `json:"helped_ns"`      // in which the rank had a helper
}

func (s *Sharing) add(o *Sharing, times int64) {
	s.HelperWaitNs += times * o.HelperWaitNs
	s.HelperMoves += times * o.HelperMoves
	s.HelpedNs += times * o.HelpedNs
}

// helperNode is a node whose helpers share its idle cores. Its processors are numbered: first one
// for each rank, which is always busy, then the idle ones.
type helperNode struct {
	opt    *IdleCores
	seats  []*seat
	cores  []*helperCore
	claims []placement.Claim
}

// seat is the place of one helper on its node.
type seat struct {
	rank     *rank
	node     *helperNode
	commCPU  int
	chooser  *placement.Chooser
	at       helper.Placement
	core     *helperCore // that it holds or waits for
	helpedNs int64       // since when, if it is not parked

	waits       bool // for the core
	waitsFromNs int64
}

// installNodes puts the helpers of this policy on the nodes. onDemand says that a rank whose helper has no idle core
// under policy auto is served on demand.
func (e *engine) installNodes(onDemand bool) error {
	o := e.opt.Cores
	policy, err := placement.ParseIdlePolicy(o.Policy)
	if err != nil {
		return err
	}
	for i, members := range e.opt.nodes(len(e.ranks)) {
		n := &helperNode{opt: o}
		for range o.PerNode {
			n.cores = append(n.cores, &helperCore{
				sliceNs: o.SliceNs,
				wake:    func(s *seat, at int64) { e.queue.set(e.actor(helperActor, s.rank.id), at) },
			})
		}
		allowed := make([]int, len(members)+o.PerNode)
		for cpu := range allowed {
			allowed[cpu] = cpu
		}
		for cpu, r := range members {
			s := &seat{rank: e.ranks[r], node: n, commCPU: cpu}
			s.chooser = placement.NewChooser(policy, &placement.Topology{}, allowed, placement.Owner{PID: int32(r) + 1})
			s.at = helper.Placement{CPU: helper.AnyCPU, Helpers: 1}
			if onDemand {
				s.at = s.chooser.ShareWithRank()
			}
			s.at.Parked = policy == placement.Off || o.PerNode == 0 && !s.at.Shared
			s.share(e, 0)
			e.ranks[r].seat = s
			n.seats = append(n.seats, s)
		}
		e.nodes = append(e.nodes, n)
		if policy != placement.Off {
			e.queue.set(e.actor(nodeActor, i), o.IntervalNs)
		}
	}
	return nil
}

// look lets every helper of a node choose its core at t, and returns when to look again.
func (n *helperNode) look(e *engine, t int64) (nextNs int64) {
	load := map[int]float64{}
	for cpu := range n.seats {
		load[cpu] = 1
	}
	for i, c := range n.cores {
		load[len(n.seats)+i] = c.load(t, n.opt.IntervalNs)
	}
	for _, s := range n.seats {
		if s.rank.state == finished {
			n.withdraw(s)
			continue
		}
		l := placement.Look{Load: load, CommCPU: s.commCPU, Bytes: s.rank.helper.path.cache.Pinned().Bytes}
		n.claims = s.chooser.Choose(l, n.claims)
		if p, changed := s.chooser.Placement(n.claims); changed {
			s.place(e, p, t)
		}
	}
	return t + n.opt.IntervalNs
}

// withdraw drops the claim of a rank that has finished.
func (n *helperNode) withdraw(s *seat) {
	n.claims = slices.DeleteFunc(n.claims, func(c placement.Claim) bool { return c.Owner.PID == int32(s.rank.id)+1 })
}

// place does at t what the Chooser has decided. What the helper is at it carries out first.
func (s *seat) place(e *engine, p helper.Placement, t int64) {
	was := s.at
	s.at = p
	if p.CPU != was.CPU || p.Parked != was.Parked {
		s.rank.sharing.HelperMoves++
	}
	if p.Parked {
		s.park(t, was)
		return
	}
	s.rank.helper.loop.Decider.SetShareNs(p.ShareNs(s.node.opt.SliceNs))
	s.share(e, t)
	if s.core != nil && s.core.holder != s {
		s.core.leave(s, t)
		s.core = nil
	} else if !was.Parked {
		return // it moves at its next turn
	}
	if was.Parked {
		s.rank.helper.loop.Parked(t)
		s.helpedNs = t
	}
	e.queue.set(e.actor(helperActor, s.rank.id), t)
}

// share begins or ends that the rank is served on demand.
func (s *seat) share(e *engine, t int64) {
	if s.at.Shared {
		s.rank.helper.limit(e.opt.HelperShare, t)
	} else {
		s.rank.helper.limit(0, t)
	}
}

// park counts the time until now, and takes a helper from the queue of its core.
func (s *seat) park(t int64, was helper.Placement) {
	if !was.Parked {
		s.rank.sharing.HelpedNs += t - s.helpedNs
	}
	if s.core != nil && s.core.holder != s {
		s.core.leave(s, t)
		s.core = nil
	}
}

// helperTurn gives a helper its turn at t and returns when the next one is.
func (e *engine) helperTurn(r *rank, t int64) (nextNs int64) {
	if r.seat == nil {
		return r.helper.step(t)
	}
	return r.seat.turn(t)
}

func (s *seat) turn(t int64) (nextNs int64) {
	v := s.rank.helper
	if s.at.Parked {
		v.asleep, v.observed = false, false
		v.finish(t)
		s.leave(t)
		return never
	}
	if s.core != nil && s.at.CPU != helper.AnyCPU && s.core != s.node.core(s.at.CPU) {
		v.finish(t)
		s.leave(t)
	}
	if s.core == nil {
		s.core = s.pick()
	}
	if s.core != nil {
		if nextNs, ok := s.core.request(s, t); !ok {
			return nextNs
		}
	}
	nextNs = v.step(t)
	if v.asleep {
		s.leave(t)
	}
	return nextNs
}

func (s *seat) leave(t int64) {
	if s.core != nil {
		s.core.leave(s, t)
		s.core = nil
	}
}

// core returns the idle core with a number; nil for the processor of a rank.
func (n *helperNode) core(cpu int) *helperCore {
	if cpu < len(n.seats) {
		return nil
	}
	return n.cores[cpu-len(n.seats)]
}

// pick returns the core to run on: that of the placement, or else the one with least to do, of
// those its own last one, or else one that nobody has used.
func (s *seat) pick() (best *helperCore) {
	if s.at.CPU != helper.AnyCPU {
		return s.node.core(s.at.CPU)
	}
	rank := func(c *helperCore) int {
		n := 3 * c.users()
		switch c.last {
		case s:
			return n
		case nil:
			return n + 1
		}
		return n + 2
	}
	for _, c := range s.node.cores {
		if best == nil || rank(c) < rank(best) {
			best = c
		}
	}
	return best
}

// sharingAt returns what a rank's helper has shared until t.
func (r *rank) sharingAt(t int64, o *IdleCores) *Sharing {
	if o == nil {
		return nil
	}
	x := r.sharing
	x.IdleCores, x.IdlePolicy = o.PerNode, o.Policy
	if s := r.seat; s != nil && !s.at.Parked {
		x.HelpedNs += t - s.helpedNs
	}
	return &x
}
