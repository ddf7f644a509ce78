package calibrate

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// counting counts what the memory between operations says at each of them.
type counting struct {
	verbs.Provider
	between computation
	seen    []byte
}

func (c *counting) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	c.seen = append(c.seen, c.between[len(c.between)-1])
	return c.Provider.Register(r, a)
}

func (c *counting) Deregister(r verbs.Region) error {
	c.seen = append(c.seen, c.between[len(c.between)-1])
	return c.Provider.Deregister(r)
}

func TestMemoryIsWrittenBeforeEachOperation(t *testing.T) {
	p := &counting{Provider: sim.New(sim.Options{}), between: make(computation, 64+1)}
	o := Options{MaxPages: 2, Rounds: 3, between: p.between}
	if _, err := measure(p, o, touched); err != nil {
		t.Fatal(err)
	}
	if len(p.seen) != 2*2*3 {
		t.Fatalf("%d operations on two sizes in 3 rounds", len(p.seen))
	}
	for i, n := range p.seen {
		if int(n) != i+1 {
			t.Errorf("operation %d: the memory was written %d times", i, n)
		}
	}
}
