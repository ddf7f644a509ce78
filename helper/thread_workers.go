package helper

import (
	"runtime"

	"pinwheel/internal/fault"
	"pinwheel/schedule"
)

// MostWorkers is the most workers of one helper. Registrations hardly slow each other down (make bench-together), but
// fewer and fewer programs need more of them at the same time: with perfect predictions, IS gets 0.895 of the possible
// saving with one worker, 0.942 with two, 0.969 with four and 0.978 with eight. Most traces gain less than 0.01.
const MostWorkers = 4

// crew is the workers of a helper: threads that carry out long actions while the helper goes on deciding. One has the
// helper's own processor, the others have idle ones. A worker starts when it is first needed, sleeps between its
// actions, and ends with the helper. Only the helper's thread uses a crew.
type crew struct {
	t        *Thread
	cpus     []int // where they run; with one, the helper does all by itself
	workers  []*worker
	underWay int
	results  chan result
}

// worker is one of these threads. Its methods are for its own thread, but for job.
type worker struct {
	job  chan job // closed to end it
	busy bool
	cpu  int
}

type job struct {
	schedule.Action
	cpu int
}

// result is what became of a job.
type result struct {
	schedule.Action
	by             *worker
	startNs, endNs int64
	cpuNs          int64
	err            error
}

func newCrew(t *Thread) crew { return crew{t: t, results: make(chan result, MostWorkers)} }

// place says on which processors workers may run from now on, besides the helper's own. What is under way stays where it is.
func (c *crew) place(p *Placement) {
	c.cpus = c.cpus[:0]
	if p.Spares > 0 {
		c.cpus = append(append(c.cpus, p.CPU), p.Spare[:p.Spares]...)
	}
	c.t.opt.Decider.SetWorkers(max(1, len(c.cpus)))
}

// hand gives an action to a worker. ok is false if there is none: the helper is to carry it out.
func (c *crew) hand(a schedule.Action) (ok bool) {
	for i := len(c.cpus) - 1; i >= 0; i-- { // the helper's own processor is the last choice
		for len(c.workers) <= i {
			c.workers = append(c.workers, nil)
		}
		w := c.workers[i]
		if w == nil {
			w = &worker{job: make(chan job, 1), cpu: AnyCPU}
			c.workers[i] = w
			c.t.ended.Add(1)
			go c.t.work(w, c.results)
		}
		if !w.busy {
			w.busy = true
			c.underWay++
			w.job <- job{a, c.cpus[i]}
			return true
		}
	}
	return false
}

// take returns the next result. Without waiting, ok is false if there is none yet.
func (c *crew) take(wait bool) (r result, ok bool) {
	switch {
	case c.underWay == 0:
		return r, false
	case wait:
		r = <-c.results
	default:
		select {
		case r = <-c.results:
		default:
			return r, false
		}
	}
	r.by.busy = false
	c.underWay--
	return r, true
}

// dismiss ends the workers, each when it is done with what it does.
func (c *crew) dismiss() {
	for _, w := range c.workers {
		if w != nil {
			close(w.job)
		}
	}
	c.workers = nil
}

// work is the life of a worker. As with the helper, its thread is never unlocked and ends with it.
func (t *Thread) work(w *worker, results chan<- result) {
	defer t.ended.Done()
	runtime.LockOSThread()
	for j := range w.job {
		if j.cpu != w.cpu {
			if w.cpu = j.cpu; pinThread(j.cpu) != nil {
				w.cpu = AnyCPU // the kernel chooses one
			}
		}
		cpuNs := ownCPUNs()
		r := result{Action: j.Action, by: w, startNs: t.opt.Clock.NowNs()}
		r.err = fault.Contain(func() error { return t.do(&j.Action) })
		r.endNs = t.opt.Clock.NowNs()
		r.cpuNs = ownCPUNs() - cpuNs
		results <- r
		t.wakeUp()
	}
}

// do carries out an action.
func (t *Thread) do(a *schedule.Action) error {
	if a.Kind == schedule.Deregister {
		return t.opt.Registrar.Deregister(a.Region)
	}
	return t.opt.Registrar.Register(a.Region)
}
