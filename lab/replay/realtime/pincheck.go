package realtime

import (
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// pinCheck compares what the kernel counts as pinned or locked in this
// process with what we count.
type pinCheck struct {
	real      bool  // the provider pins
	baseBytes int64 // counted by the kernel before the run
	samples   int64
	diffPages int64 // the largest difference seen
}

// sampleEvery is how often the check reads /proc/self/status, which costs some 30 us.
const sampleEvery = 20 * time.Millisecond

func kernelPinned() (int64, error) {
	pin, err := verbs.StatusBytes("VmPin")
	if err != nil {
		return 0, err
	}
	lck, err := verbs.StatusBytes("VmLck")
	return pin + lck, err
}

func newPinCheck(p verbs.Provider) (c pinCheck, err error) {
	c.real = p.Name() != "sim"
	c.baseBytes, err = kernelPinned()
	return c, err
}

// sample takes one comparison, unless a registration is under way.
func (c *pinCheck) sample(p *countingProvider) {
	ours, before, ok := p.quiet()
	if !ok || !c.real {
		return
	}
	kernel, err := kernelPinned()
	if err != nil {
		return
	}
	if _, after, ok := p.quiet(); !ok || before != after {
		return
	}
	c.samples++
	diff := (kernel - c.baseBytes - ours) / int64(mem.PageSize)
	c.diffPages = max(c.diffPages, diff, -diff)
}

// watch samples until stop is closed.
func (c *pinCheck) watch(p *countingProvider, stop <-chan struct{}) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			c.sample(p)
		}
	}
}
