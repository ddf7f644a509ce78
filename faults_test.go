package pinwheel

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
)

// The campaign: one fault, at a random call of one point, in a Manager of its
// own with live traffic. Nobody hangs, nothing crashes, the user reads one line at most,
// and nothing stays pinned. PINWHEEL_FAULTS says how many (make test-faults).

const (
	campaignBuffers     = 8
	campaignBufferPages = 8               // above the threshold
	campaignSlack       = 2 * time.Second // for a fault to be reached
)

// play opens a Manager, lets traffic run into the fault, and closes it.
func (r *run) play(p verbs.Provider, memory mem.Range) error {
	x := &tripped{r, watchful{Provider: p},
		&changes{watched: map[uint64]mem.Range{}, stale: map[uint64]bool{}, verify: memory.Start + mem.Addr(memory.Len()/2)}}
	inNew := r.point >= atWord
	r.armed.Store(inNew)
	o := Options{Policy: Paper, Provider: x, Watcher: x, IdlePolicy: IdleIgnore, Window: NoWindow, Costs: cheapCosts,
		BudgetBytes:   int64(memory.Len()) * 3 / 4,
		Warn:          func(s string) { r.warned.add(s); _ = r.at(atWarn) },
		Debug:         func(string) { _ = r.at(atDebug) },
		wrapPredictor: func(q predictor.Predictor) predictor.Predictor { return trippedPredictor{r, q} },
		wrapRegistrar: func(q helper.Registrar) helper.Registrar { return trippedRegistrar{r, q} },
	}
	if inNew {
		o.Costs = verbs.Costs{}
		o.BudgetBytes = 0
	}
	m, err := New(o)
	if err != nil {
		if r.point == atWord && r.kind == panicking && errors.Is(err, ErrFault) {
			return nil
		}
		return fmt.Errorf("New: %w", err)
	}
	r.armed.Store(true)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		th, err := m.Thread()
		if err != nil {
			return fmt.Errorf("Thread: %w", err)
		}
		wg.Go(func() { errs[i] = r.traffic(m, th, x, memory, i) })
	}
	wg.Wait()
	r.armed.Store(false)
	if err := m.Close(); err != nil && !errors.Is(err, ErrFault) && !errors.Is(err, errSeeded) {
		errs = append(errs, fmt.Errorf("Close: %w", err))
	}
	if w := r.warned.all(); len(w) > 1 {
		errs = append(errs, fmt.Errorf("%d warnings: %q", len(w), w))
	}
	if s := m.Stats().Cache; s.Pinned != (regcache.Usage{}) || s.Lingering != 0 {
		errs = append(errs, fmt.Errorf("the cache has left %+v", s))
	}
	return errors.Join(append(errs, m.cache.Verify())...)
}

// cheapCosts make the helper act between uses that follow each other in 100 us.
var cheapCosts = verbs.Costs{Register: verbs.Cost{FixedNs: 1000}, Deregister: verbs.Cost{FixedNs: 1000}}

// traffic uses the buffers in turn until the fault has happened, and a little longer.
func (r *run) traffic(m *Manager, th *Thread, x *tripped, memory mem.Range, seed int) error {
	rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(seed)))
	if rng.IntN(2) == 0 {
		defer th.Close()
	}
	end := time.Now().Add(campaignSlack)
	for i, more := seed, 2*campaignBuffers; more > 0 && time.Now().Before(end); i++ {
		if r.fired.Load() {
			more--
		}
		buffer := memory
		buffer.Start += mem.Addr(i % campaignBuffers * campaignBufferPages * int(mem.PageSize))
		buffer.End = buffer.Start + mem.Addr(campaignBufferPages*int(mem.PageSize))
		if rng.IntN(16) == 0 {
			buffer.End -= mem.Addr(mem.PageSize)
		}
		var u Use
		err := th.Acquire(&u, buffer, verbs.AccessLocalWrite, Op(i%campaignBuffers), nil)
		switch {
		case err == nil && (!u.Region().Range.Contains(buffer) || !x.registered(u.Region())):
			return fmt.Errorf("asked for %v, got %v, registered: %t", buffer, u.Region(), x.registered(u.Region()))
		case err != nil && !errors.Is(err, ErrFault) && !errors.Is(err, errSeeded) && !errors.Is(err, verbs.ErrPinnedMemory):
			return fmt.Errorf("Acquire: %w", err)
		}
		th.Release(&u)
		switch rng.IntN(24) {
		case 0:
			x.change(buffer)
		case 1:
			if err := m.Invalidate(buffer); err != nil && !errors.Is(err, ErrFault) && !errors.Is(err, errSeeded) {
				return fmt.Errorf("Invalidate: %w", err)
			}
		case 2:
			time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
		default:
			for range 20 {
				runtime.Gosched() // the helper has its turn
			}
		}
	}
	return nil
}

// campaign plays n runs, spread over points and kinds.
type campaign struct {
	memory         func(i int) mem.Range // of the i-th worker
	open           func() (p verbs.Provider, left func() error, err error)
	reached, fired [pointCount][kindCount]atomic.Int64
}

func (c *campaign) one(i int, worker int) error {
	r := &run{point: point(i % int(pointCount)), kind: kind(i / int(pointCount) % int(kindCount)), nth: 1 + rand.Int64N(4)}
	switch r.point {
	case atRegister, atDeregister, atLimits, atPinning, atPinned, atObserve, atNext, atChanged:
		r.nth = 1 + rand.Int64N(30)
	case atWarn, atDebug, atWord:
		r.nth = 1 // there is but one
	}
	if r.kind == failing && !r.point.canFail() {
		r.kind = panicking
	}
	p, left, err := c.open()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- r.play(p, c.memory(worker)) }()
	select {
	case err = <-ended:
	case <-time.After(testwait.Limit):
		stacks := make([]byte, 1<<20)
		return fmt.Errorf("%s, call %d, kind %d: hangs\n%s", pointNames[r.point], r.nth, r.kind,
			stacks[:runtime.Stack(stacks, true)])
	}
	if r.calls[r.point].Load() > 0 {
		c.reached[r.point][r.kind].Add(1)
	}
	if r.fired.Load() {
		c.fired[r.point][r.kind].Add(1)
	}
	if err = errors.Join(err, left()); err != nil {
		return fmt.Errorf("%s, call %d, kind %d: %w", pointNames[r.point], r.nth, r.kind, err)
	}
	return nil
}

func (c *campaign) play(t *testing.T, n int) {
	began := time.Now()
	var next, fired atomic.Int64
	var wg sync.WaitGroup
	for worker := range campaignWorkers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !t.Failed(); i = int(next.Add(1)) - 1 {
				if err := c.one(i, worker); err != nil {
					t.Errorf("run %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for p := range pointCount {
		line := fmt.Sprintf("%-18s", pointNames[p])
		for k, name := range []string{"panic", "error", "delay"} {
			f := c.fired[p][k].Load()
			fired.Add(f)
			line += fmt.Sprintf(" %s: reached %d, fired %d;", name, c.reached[p][k].Load(), f)
			if f == 0 && !t.Failed() && (kind(k) != failing || p.canFail()) && n >= 20*int(pointCount) {
				t.Errorf("no %s in %s: the test shows too little", name, pointNames[p])
			}
		}
		t.Log(line)
	}
	t.Logf("%d runs, %d faults fired, %v", n, fired.Load(), time.Since(began).Round(time.Millisecond))
}

const campaignWorkers = 4

// campaignRuns is what the environment says, or enough to reach every point.
func campaignRuns(t *testing.T, variable string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), fmt.Sprint(otherwise)))
	if err != nil {
		t.Fatal(variable, err)
	}
	return n
}

func campaignMemory(t *testing.T) func(i int) mem.Range {
	const bytes = campaignBuffers * campaignBufferPages
	all, err := unix.Mmap(-1, 0, campaignWorkers*bytes*int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	return func(i int) mem.Range {
		return mem.RangeOf(all[i*bytes*int(mem.PageSize):][:bytes*int(mem.PageSize)])
	}
}

// accounted is a provider that says what it holds.
type accounted interface {
	verbs.Provider
	verbs.Accountant
}

// leaves reports what a provider holds after a run, and closes it.
func leaves(p accounted) func() error {
	return func() error {
		if u := p.Usage(); u != (verbs.Usage{}) {
			return errors.Join(fmt.Errorf("%+v stays pinned", u), p.Close())
		}
		return p.Close()
	}
}

func TestFaultsOverSim(t *testing.T) {
	c := &campaign{memory: campaignMemory(t), open: func() (verbs.Provider, func() error, error) {
		p := sim.New(sim.Options{})
		return p, leaves(p), nil
	}}
	c.play(t, campaignRuns(t, "PINWHEEL_FAULTS", 600))
}

func TestFaultsOverUring(t *testing.T) {
	if p, err := uring.Open(uring.Options{}); err != nil {
		t.Skip(err)
	} else if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	c := &campaign{memory: campaignMemory(t), open: func() (verbs.Provider, func() error, error) {
		// The kernel gives back the memory of a closed ring some time later.
		p, err := uring.Open(uring.Options{})
		for deadline := time.Now().Add(30 * time.Second); errors.Is(err, verbs.ErrPinnedMemory) &&
			time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			p, err = uring.Open(uring.Options{})
		}
		if err != nil {
			return nil, nil, err
		}
		return p, leaves(p), nil
	}}
	c.play(t, campaignRuns(t, "PINWHEEL_FAULTS_URING", 100))
}
