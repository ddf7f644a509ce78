package placement

import (
	"fmt"
	"slices"

	"pinwheel/helper"
	"pinwheel/internal/node"
)

// IdlePolicy says which processes of a node run a helper, and where. Conservative and Aggressive are those of
// Li et al., CF'11, section 5.
type IdlePolicy uint8

const (
	// Auto is Conservative as long as there are idle cores. A helper without one shares the core of
	// its rank, if it may (Chooser.ShareWithRank).
	Auto IdlePolicy = iota
	// Conservative runs at most one helper on each idle core, for the
	// processes with the most registered memory.
	Conservative
	// Aggressive runs a helper for every process; helpers share idle cores.
	Aggressive
	// Off runs none.
	Off
)

// ParseIdlePolicy reads a value of PINWHEEL_IDLE_POLICY.
func ParseIdlePolicy(s string) (IdlePolicy, error) {
	switch s {
	case "auto":
		return Auto, nil
	case "conservative":
		return Conservative, nil
	case "aggressive":
		return Aggressive, nil
	case "off":
		return Off, nil
	}
	return Off, fmt.Errorf("placement: idle policy %q is none of auto, conservative, aggressive, off", s)
}

// Owner identifies the process of a helper among those of its job on this node.
type Owner = node.Owner

// Claim is the wish of one helper for a processor, as all processes of a node
// see it.
type Claim struct {
	Owner Owner
	CPU   int   // AnyCPU if it has none
	Bytes int64 // registered memory of its process
}

// view is what one process knows when it looks for an idle core.
type view struct {
	topology *Topology
	allowed  []int           // processors that the helper may use
	load     map[int]float64 // share of the last interval; missing: unknown, taken for idle
	commCPU  int             // where the communication thread runs, or AnyCPU
	others   []Claim
	self     Claim // CPU is the present one

	quotaUsedUp bool // the control groups have no processor time left: an idle processor is of no use
}

const (
	// A processor is idle below idleLoad. A helper leaves its processor above
	// busyLoad, so that a load between the two moves nothing.
	idleLoad = 0.25
	busyLoad = 0.50
)

// choose returns the claim of this process. Under Conservative and Auto it may take the core
// of another claim, whose index in v.others it returns, or else -1. withRank says that
// the helper shares the core of its rank, under Auto; its claim may be AnyCPU then.
func (v *view) choose(p IdlePolicy) (c Claim, loser int, withRank bool) {
	if !slices.Contains(v.allowed, v.self.CPU) {
		v.self.CPU = helper.AnyCPU // it went offline, or the cpuset changed
	}
	c, loser = v.self, -1
	switch p {
	case Auto:
		if c, loser = v.chooseCore(); c.CPU == helper.AnyCPU {
			c.CPU, withRank = v.chooseWithRank(), true
		}
	case Conservative:
		c, loser = v.chooseCore()
	case Aggressive:
		c.CPU = v.chooseShared()
	default:
		c.CPU = helper.AnyCPU
	}
	return c, loser, withRank
}

// chooseCore keeps the present core while it is idle; else takes the nearest
// idle core without a helper; else one whose process has clearly less memory
// registered.
func (v *view) chooseCore() (c Claim, loser int) {
	c = v.self
	if c.CPU != helper.AnyCPU && !v.isRanks(c.CPU) && v.coreIdle(c.CPU, busyLoad) && v.claimOn(c.CPU) < 0 {
		return c, -1
	}
	c.CPU = helper.AnyCPU
	loser = -1
	for _, cpu := range v.nearestFirst() {
		if !v.coreIdle(cpu, idleLoad) {
			continue
		}
		holder := v.claimOn(cpu)
		if holder < 0 {
			c.CPU = cpu
			return c, -1
		}
		// A quarter more, or two processes of equal size would take the core
		// from each other for ever.
		if bytes := v.others[holder].Bytes; bytes+bytes/4 < c.Bytes && (loser < 0 || bytes < v.others[loser].Bytes) {
			loser = holder
			c.CPU = cpu
		}
	}
	return c, loser
}

// chooseShared takes the idle processor with the fewest helpers, the nearest
// of those. It keeps the present one unless that makes a difference.
func (v *view) chooseShared() int {
	best, bestHelpers := helper.AnyCPU, 0
	for _, cpu := range v.nearestFirst() {
		if !v.idle(cpu, idleLoad) {
			continue
		}
		if n := v.helpersOn(cpu); best == helper.AnyCPU || n < bestHelpers {
			best, bestHelpers = cpu, n
		}
	}
	now := v.self.CPU
	if now != helper.AnyCPU && v.idle(now, busyLoad) && (best == helper.AnyCPU || v.helpersOn(now) <= bestHelpers+1) {
		return now
	}
	return best
}

// chooseWithRank takes a processor of the core on which the communication thread runs: another one than that
// thread's, if there is one and it is idle. It returns AnyCPU if the helper may use none of them.
func (v *view) chooseWithRank() int {
	best := helper.AnyCPU
	for _, cpu := range v.topology.Core(v.commCPU) {
		limit := idleLoad
		if cpu == v.self.CPU {
			limit = busyLoad
		}
		switch {
		case !slices.Contains(v.allowed, cpu):
		case cpu == v.commCPU && best == helper.AnyCPU, cpu != v.commCPU && v.idle(cpu, limit):
			best = cpu
		}
	}
	return best
}

// isRanks reports whether a processor belongs to the core on which the communication thread runs.
func (v *view) isRanks(cpu int) bool {
	return v.commCPU != helper.AnyCPU && v.topology.Distance(v.commCPU, cpu) <= SameCore
}

// nearestFirst returns the allowed processors outside the communication
// thread's core, the best first.
func (v *view) nearestFirst() []int {
	var list []int
	for _, cpu := range v.allowed {
		if !v.isRanks(cpu) {
			list = append(list, cpu)
		}
	}
	v.topology.sortForHelper(list, v.commCPU)
	return list
}

// coreIdle reports whether all processors of a core are idle: a
// helper slows down what runs on the other thread of its core.
func (v *view) coreIdle(cpu int, limit float64) bool {
	return !slices.ContainsFunc(v.topology.Core(cpu), func(c int) bool { return !v.idle(c, limit) })
}

// idle reports whether a processor is below a load, and there is time left to use it.
func (v *view) idle(cpu int, limit float64) bool { return !v.quotaUsedUp && v.load[cpu] < limit }

// claimOn returns the index of another's claim on a processor's core, or -1.
func (v *view) claimOn(cpu int) int {
	core := v.topology.Core(cpu)
	return slices.IndexFunc(v.others, func(c Claim) bool { return slices.Contains(core, c.CPU) })
}

// spares returns the processors for the workers of this helper, which has one already: one of each idle core that no
// helper has. The helpers of the node divide them; this is the share of one, at most this many.
func (v *view) spares(most int) (spare []int) {
	var idle []int
	seen := map[int]bool{}
	for _, cpu := range v.allowed {
		core := v.topology.Core(cpu)
		if !seen[core[0]] && !v.isRanks(cpu) && !slices.Contains(core, v.self.CPU) && v.coreIdle(cpu, idleLoad) && v.claimOn(cpu) < 0 {
			idle = append(idle, cpu)
		}
		seen[core[0]] = true
	}
	helpers, mine := 1, 0
	for _, c := range v.others {
		if c.CPU != helper.AnyCPU {
			helpers++
			if c.Owner.PID < v.self.Owner.PID {
				mine++
			}
		}
	}
	for i := mine; i < len(idle) && len(spare) < most; i += helpers {
		spare = append(spare, idle[i])
	}
	return spare
}

// helpersOn returns the number of other helpers on a processor.
func (v *view) helpersOn(cpu int) (n int) {
	for _, c := range v.others {
		if c.CPU == cpu {
			n++
		}
	}
	return n
}
