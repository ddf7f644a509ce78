package regcache

import (
	"testing"

	"pinwheel/verbs"
)

// Nobody could have registered with other rights in advance what was never registered with them.
func TestFirstRegistrationWithOtherRightsIsNotLate(t *testing.T) {
	w := newWatcher(t)
	fx, _ := newRefusing(t, Options{Watcher: w})
	const relaxed = both | verbs.AccessRelaxedOrdering
	for range 2 {
		for _, outcome := range []Outcome{First, Late} {
			for _, rights := range []verbs.Access{read, both, relaxed} {
				id := fx.use(span(0, 16), rights, outcome)
				if err := fx.Deregister(id); err != nil {
					t.Fatal(err)
				}
			}
			id := fx.use(span(4, 4), read, Late) // part of what was registered with more
			if err := fx.Deregister(id); err != nil {
				t.Fatal(err)
			}
		}
		w.change(span(0, 16))
	}
}
