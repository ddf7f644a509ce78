package calibrate

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
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

// Neighbours go on until they are stopped, and then end.
func TestNeighboursComputeAllTheWhile(t *testing.T) {
	testwait.Bound(t)
	g := startNeighbours(2, 4096)
	if n := neighboursNow(); n != 2 {
		t.Errorf("%d neighbours compute, want 2", n)
	}
	g.stop()
	if n := neighboursNow(); n != 0 {
		t.Errorf("%d neighbours compute after they were stopped", n)
	}
}

// neighboursNow counts the goroutines of startNeighbours. Those of earlier tests may end meanwhile.
func neighboursNow() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte(".startNeighbours."))
}

func TestNeighboursNeedMemoryToWrite(t *testing.T) {
	testwait.Bound(t)
	p := sim.New(sim.Options{})
	if _, err := Run(p, Options{MaxPages: 2, Rounds: 1, Beside: 1}); err == nil {
		t.Error("a neighbour without memory")
	}
	c, err := Run(p, Options{MaxPages: 2, Rounds: 1, Beside: 1, BetweenBytes: 4096})
	if err != nil || c.Beside != 1 || c.BetweenBytes != 4096 {
		t.Errorf("%+v, %v: want a calibration that says what was beside it", c, err)
	}
}

func TestNeighboursAreNoNegativeNumber(t *testing.T) {
	o := Options{MaxPages: 2, Rounds: 1, Beside: -1, BetweenBytes: 4096}
	if _, err := Run(sim.New(sim.Options{}), o); err == nil || !strings.Contains(err.Error(), "Beside is -1") {
		t.Errorf("got %v", err)
	}
}

// While neighbours compute, whoever measures has a P of its own: GOMAXPROCS is theirs beside what it was.
func TestNeighboursLeaveGOMAXPROCSAsItWas(t *testing.T) {
	testwait.Bound(t)
	before := runtime.GOMAXPROCS(0)
	g := startNeighbours(3, 4096)
	during := runtime.GOMAXPROCS(0)
	g.stop()
	if during != before+3 {
		t.Errorf("GOMAXPROCS is %d beside three neighbours, %d before them", during, before)
	}
	_, err := Run(sim.New(sim.Options{}), Options{MaxPages: 2, Rounds: 1, Beside: 1, BetweenBytes: 4096})
	if after := runtime.GOMAXPROCS(0); err != nil || after != before {
		t.Errorf("GOMAXPROCS is %d, %d before Run, %v", after, before, err)
	}
}
