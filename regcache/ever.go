package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// everRegistered says which pages were registered since they were mapped, and with which rights: tells First from Late.
// It has an entry for all rights that ever came, with the pages that were registered with these and perhaps more.
type everRegistered []everWith

type everWith struct {
	access verbs.Access
	pages  mem.Set
}

// with returns the pages that were registered with the rights a.
func (e *everRegistered) with(a verbs.Access) *mem.Set {
	fresh := everWith{access: a}
	for i := range *e {
		w := &(*e)[i]
		switch {
		case w.access == a:
			return &w.pages
		case w.access.Includes(a):
			for r := range w.pages.All() {
				fresh.pages.Add(r)
			}
		}
	}
	*e = append(*e, fresh)
	return &(*e)[len(*e)-1].pages
}

func (e *everRegistered) add(r mem.Range, a verbs.Access) {
	e.with(a)
	for i := range *e {
		if w := &(*e)[i]; a.Includes(w.access) {
			w.pages.Add(r)
		}
	}
}

func (e *everRegistered) remove(r mem.Range) {
	for i := range *e {
		(*e)[i].pages.Remove(r)
	}
}
