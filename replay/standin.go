package replay

import (
	"errors"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// standin stands in for regcache until that lands.
type standin struct {
	p      verbs.Provider
	byID   map[mem.RegionID]*sregion
	list   []*sregion
	exact  map[mem.Range]*sregion
	nextID mem.RegionID
}

type sregion struct {
	id   mem.RegionID
	rng  mem.Range
	refs int
	on   bool
	reg  verbs.Region
}

type sref struct {
	home *sregion
	by   *sregion
}

func newStandin(p verbs.Provider) *standin {
	return &standin{p: p, byID: map[mem.RegionID]*sregion{}, exact: map[mem.Range]*sregion{}}
}

func (s *standin) home(r mem.Range) *sregion {
	if h := s.exact[r]; h != nil {
		return h
	}
	var best *sregion
	for _, x := range s.list {
		if x.rng.Contains(r) && x.rng.Len() <= 2*r.Len() && (best == nil || x.rng.Len() < best.rng.Len()) {
			best = x
		}
	}
	if best == nil {
		s.nextID++
		best = &sregion{id: s.nextID, rng: r}
		s.byID[best.id] = best
		s.list = append(s.list, best)
	}
	s.exact[r] = best
	return best
}

func (s *standin) Acquire(r mem.Range) (sref, error) {
	h := s.home(r.PageAligned())
	if h.on {
		h.refs++
		return sref{h, h}, nil
	}
	for _, x := range s.list {
		if x.on && x.rng.Contains(r) {
			x.refs++
			return sref{h, x}, nil
		}
	}
	if err := s.Register(h.id); err != nil {
		return sref{}, err
	}
	h.refs++
	return sref{h, h}, nil
}

func (s *standin) Release(x sref) { x.by.refs-- }

func (s *standin) Register(id mem.RegionID) error {
	h := s.byID[id]
	if h.on {
		return nil
	}
	reg, err := s.p.Register(h.rng, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	h.on, h.reg = true, reg
	return nil
}

var errInUse = errors.New("in use")

func (s *standin) Deregister(id mem.RegionID) error {
	h := s.byID[id]
	if h.refs > 0 {
		return errInUse
	}
	if !h.on {
		return nil
	}
	h.on = false
	return s.p.Deregister(h.reg)
}
