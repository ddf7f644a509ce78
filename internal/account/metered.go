package account

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// Metered is a provider that books in Pinned what is registered through it.
type Metered struct {
	verbs.Provider
	Pinned *Mean
}

// Register implements verbs.Provider.
func (p Metered) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	region, err := p.Provider.Register(r, a)
	if err == nil {
		p.Pinned.Change(int64(region.Range.Len()))
	}
	return region, err
}

// Deregister implements verbs.Provider.
func (p Metered) Deregister(region verbs.Region) error {
	err := p.Provider.Deregister(region)
	if err == nil {
		p.Pinned.Change(-int64(region.Range.Len()))
	}
	return err
}
