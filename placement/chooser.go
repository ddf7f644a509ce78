package placement

import (
	"math"
	"slices"

	"pinwheel/helper"
)

// Chooser decides where one helper runs, one look at the machine after another. It reads no clock
// and no file, so that a Placer and a simulation of a node place helpers with the same code. It is
// not safe for concurrent use.
type Chooser struct {
	policy           IdlePolicy
	mayShare         bool // the core of its rank
	withRank         bool // self.CPU is of the rank's core
	quotaUsedUp      bool // at the last look
	topology         *Topology
	allowed          []int
	quotaLeft        float64 // as Limit says
	self             Claim
	last             helper.Placement
	spare            helper.Placement // its Spare and Spares
	looksWithoutCore int              // in a row
}

// Look is what a Chooser sees of the machine at one moment.
type Look struct {
	Load    map[int]float64 // of each processor since the last look, from 0 to 1; missing: taken for idle
	CommCPU int             // where the communication thread runs, or AnyCPU
	Bytes   int64           // registered memory of the process now
}

// NewChooser returns a Chooser for a helper that may use some processors. The zero Topology is a
// machine of which nothing is known. Until it has looked, the helper runs unplaced.
func NewChooser(p IdlePolicy, t *Topology, allowed []int, owner Owner) *Chooser {
	return &Chooser{
		policy: p, topology: t, allowed: allowed, quotaLeft: math.Inf(1),
		self: Claim{Owner: owner, CPU: helper.AnyCPU}, last: helper.Placement{CPU: helper.AnyCPU, Helpers: 1},
	}
}

// ShareWithRank lets the helper run on its rank's core under Auto, if no core is idle and until it is known whether
// one is. Without it, Auto is Conservative. It returns where the helper is to run until the first look.
func (c *Chooser) ShareWithRank() helper.Placement {
	if c.policy == Auto {
		c.mayShare, c.last.Shared = true, true
	}
	return c.last
}

// Limit says which processors the helper may use from now on, and how many processors' worth of time the
// quotas of its control groups have left unused since the last look: +Inf without a quota.
func (c *Chooser) Limit(allowed []int, quotaLeft float64) {
	c.allowed, c.quotaLeft = allowed, quotaLeft
}

// parkAfter is the number of looks in a row that must find no core before the
// helper parks; until then it stays where it is. Parking makes the registration
// of everything that is deregistered at that moment late, which costs more than a
// helper takes from others in a busy second or two.
const parkAfter = 3

// bytesDecay slows the fall of the bytes that a process claims to have registered, by a sixteenth of them at each look.
// A helper deregisters memory: if the claim fell with that, the core would go to a process without helper at the next
// look, and come back at the one after it.
const bytesDecay = 16

// Choose makes this helper's choice among the claims of all helpers of the node, its own among
// them or not, and returns the new ones.
func (c *Chooser) Choose(l Look, all []Claim) []Claim {
	v := view{
		topology: c.topology, allowed: c.allowed, load: l.Load, commCPU: l.CommCPU,
		others: slices.Clone(all), self: c.self,
		quotaUsedUp: isUsedUp(c.quotaLeft, c.self.CPU != helper.AnyCPU && !c.withRank),
	}
	v.self.Bytes = max(l.Bytes, c.self.Bytes-c.self.Bytes/bytesDecay)
	if i := slices.IndexFunc(v.others, func(o Claim) bool { return o.Owner == c.self.Owner }); i >= 0 {
		v.self.CPU = v.others[i].CPU // a bigger process may have taken the core
		v.others = slices.Delete(v.others, i, i+1)
	}
	policy := c.policy
	if policy == Auto && !c.mayShare {
		policy = Conservative
	}
	self, loser, withRank := v.choose(policy)
	if loser >= 0 {
		v.others[loser].CPU = helper.AnyCPU
	}
	c.self, c.withRank, c.quotaUsedUp = self, withRank, v.quotaUsedUp
	c.spare = helper.Placement{}
	if v.self = self; self.CPU != helper.AnyCPU && !withRank {
		c.spare.Spares = copy(c.spare.Spare[:], v.spares(int(min(c.quotaLeft, helper.MostWorkers-1))))
	}
	return append(slices.Clone(v.others), self)
}

// Placement returns where the helper is to run after the Choose before, with all claims of the
// node, and whether that has changed. Call it once after each Choose.
func (c *Chooser) Placement(all []Claim) (p helper.Placement, changed bool) {
	p = helper.Placement{CPU: c.self.CPU, Helpers: 1, Spare: c.spare.Spare, Spares: c.spare.Spares}
	p.Shared = c.withRank
	p.Parked = !p.Shared && p.CPU == helper.AnyCPU
	p.QuotaUsedUp = c.quotaUsedUp && (c.withRank || p.Parked)
	if c.looksWithoutCore++; !p.Parked {
		c.looksWithoutCore = 0
	} else if c.looksWithoutCore < parkAfter {
		changed = c.last.Spares > 0
		c.last.Spare, c.last.Spares = p.Spare, 0
		return c.last, changed
	}
	for _, o := range all {
		if o.CPU == p.CPU && p.CPU != helper.AnyCPU && o.Owner != c.self.Owner {
			p.Helpers++
		}
	}
	changed = p != c.last
	c.last = p
	return p, changed
}
