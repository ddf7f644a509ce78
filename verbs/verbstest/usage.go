package verbstest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// ExactUsage registers and deregisters at random, and checks after each step that the usage of p is what the kernel
// counts for this process, to the page. field is a name of /proc/self/status. Nothing may be registered before.
func ExactUsage(t *testing.T, p verbs.Provider, field string) {
	before := StatusBytes(t, field)
	const pages = 256
	_, all := Map(t, pages*mem.PageSize)
	rng := rand.New(rand.NewPCG(1, 1))
	var held []verbs.Region
	for step := range 400 {
		if len(held) == 12 || len(held) > 0 && rng.IntN(2) == 0 {
			k := rng.IntN(len(held))
			deregister(t, p, held[k])
			held = slices.Delete(held, k, k+1)
		} else {
			from := rng.Uint64N(pages * mem.PageSize)
			held = append(held, register(t, p, Part(all, from, 1+rng.Uint64N(pages*mem.PageSize-from))))
		}
		u := p.(verbs.Accountant).Usage()
		if counted := StatusBytes(t, field) - before; counted != u.PinnedBytes || u.Regions != int64(len(held)) {
			t.Fatalf("step %d: %s grew by %d bytes, usage %+v, %d regions held", step, field, counted, u, len(held))
		}
	}
}
