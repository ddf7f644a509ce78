package engine

import (
	"errors"
	"fmt"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// Caches are the registration caches that one helper serves. Only the helper calls
// the methods, but its workers call Find at the same time.
type Caches interface {
	// Find returns the cache of a region that the helper knows as id, and the
	// region's ID in that cache. The cache is nil if it was dropped.
	Find(id mem.RegionID) (*regcache.Cache, mem.RegionID)
	// Gone deals with changes of mappings, and appends to buf the regions that the caches have forgotten since the last
	// call. It may leave some out: the helper learns of them when it acts on them.
	Gone(buf []mem.RegionID) []mem.RegionID
}

// Single is the Caches of a process that has one.
type Single struct{ *regcache.Cache }

// Find implements Caches.
func (s Single) Find(id mem.RegionID) (*regcache.Cache, mem.RegionID) { return s.Cache, id }

// Gone implements Caches.
func (s Single) Gone(buf []mem.RegionID) []mem.RegionID { return s.Cache.Gone(buf) }

// Registrar makes caches a helper.Registrar.
func Registrar(c Caches) helper.Registrar { return registrar{c} }

type registrar struct{ Caches }

// Prepare closes the regions with one memory barrier for all that are in one cache.
func (r registrar) Prepare(ids []mem.RegionID) {
	for len(ids) > 0 {
		cache, _ := r.Find(ids[0])
		n := 0
		var own []mem.RegionID
		for n < len(ids) {
			c, id := r.Find(ids[n])
			if c != cache {
				break
			}
			own = append(own, id)
			n++
		}
		if cache != nil {
			cache.CloseIdle(own)
		}
		ids = ids[n:]
	}
}

func (r registrar) Register(id mem.RegionID) error {
	return r.act(id, (*regcache.Cache).TryRegister)
}

func (r registrar) Deregister(id mem.RegionID) error {
	return r.act(id, (*regcache.Cache).TryDeregister)
}

// act returns what a cache did as an error of package schedule.
func (r registrar) act(id mem.RegionID, do func(*regcache.Cache, mem.RegionID) (bool, error)) error {
	cache, id := r.Find(id)
	if cache == nil {
		return schedule.ErrGone
	}
	did, err := do(cache, id)
	switch {
	case errors.Is(err, regcache.ErrUnknown) || errors.Is(err, regcache.ErrClosed):
		return fmt.Errorf("%w: %w", schedule.ErrGone, err)
	case errors.Is(err, regcache.ErrInUse):
		return fmt.Errorf("%w: %w", schedule.ErrInUse, err)
	case err == nil && !did:
		return schedule.ErrAlready
	}
	return err
}
