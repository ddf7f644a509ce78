package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// state is where a region is in its life.
type state uint8

const (
	absent      state = iota // known, not registered
	registering              // a provider call is under way
	registered
	draining // no reference and no way to get one; a provider call is under way
)

var stateNames = [...]string{"absent", "registering", "registered", "draining"}

func (s state) String() string { return stateNames[s] }

// region is a known region, or a registration that is known no longer and
// lives until its last reference is dropped. All fields are protected by
// Cache.mu. The table describes the registration, under the slot.
type region struct {
	id            mem.RegionID // 0 if not known
	rng           mem.Range    // page-aligned
	access        verbs.Access
	slot          uint32
	heapIndex     int32 // position in Cache.lru; -1 outside
	state         state
	watched       bool // the watcher gave token, to be given back
	verify        bool // the watcher must revalidate each hit: never open in the table
	accepted      bool // the watcher has accepted a registration of it since it gave token
	closed        bool // registered, but hits on it have ended, and nobody has a reference
	wasRegistered bool // with its present range, which was good at least once
	token         uint64
	absent        links         // its place in Cache.absent
	done          chan struct{} // closed when registering or draining ends; made by who waits
}

func (g *region) known() bool { return g.id != 0 }

// inTransition reports whether a provider call for g is under way.
func (g *region) inTransition() bool { return g.state == registering || g.state == draining }

func (g *region) bytes() int64 { return int64(g.rng.Len()) }

// before orders regions by class, then address.
func (g *region) before(o *region) bool {
	if a, b := class(g.rng.Len()), class(o.rng.Len()); a != b {
		return a < b
	}
	if g.rng.Start != o.rng.Start {
		return g.rng.Start < o.rng.Start
	}
	if g.rng.End != o.rng.End {
		return g.rng.End < o.rng.End
	}
	return g.id < o.id
}
