package prefault

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/fault"
	"pinwheel/placement"
)

// crew is the threads of one Run, and what they have to do. Its methods are those of the goroutine that calls Run,
// but for work and what that calls.
type crew struct {
	opt     *Options
	usable  []int // processors
	parts   []part
	threads int

	done    atomic.Uint64
	moved   chan struct{} // done has grown
	ended   chan struct{} // closed when the last thread has ended
	running sync.WaitGroup

	mu     sync.Mutex // protects all below
	queues []*queue
	live   int
	err    error
}

// queue is the parts whose pages are to lie on one NUMA node.
type queue struct {
	cpus    []int // of that node, or all that are usable
	left    []part
	workers int
}

func newCrew(o *Options, parts []part) *crew {
	c := &crew{opt: o, usable: o.CPUs, parts: parts, moved: make(chan struct{}, 1), ended: make(chan struct{})}
	if t, err := placement.ReadTopology(o.root); err == nil {
		c.usable = t.Loud(o.CPUs)
	}
	if len(c.usable) == 0 { // nobody knows, so one thread works, wherever the kernel puts it
		c.usable = []int{max(o.CPU, 0)}
	}
	c.queues = queuesOf(o, c.usable, parts)
	return c
}

// start starts a thread that may use some processors, and uses home as long as it can.
func (c *crew) start(ctx context.Context, cpus []int, home int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == 0 && c.threads > 0 {
		return // all is done
	}
	c.live++
	c.threads++
	c.running.Go(func() { c.work(ctx, cpus, home) })
}

// work is the life of a thread, which is never unlocked and ends with it.
func (c *crew) work(ctx context.Context, cpus []int, home int) {
	runtime.LockOSThread()
	defer c.leave()
	c.fail(fault.Contain(func() error {
		var q *queue
		for {
			next, p, ok := c.take(ctx, q, cpus)
			if !ok {
				return nil
			}
			if next != q {
				bind(common(next.cpus, cpus), home)
			}
			q = next
			if err := c.opt.touch(p); err != nil {
				return err
			}
			c.done.Add(p.Len())
			select {
			case c.moved <- struct{}{}:
			default:
			}
		}
	}))
}

// take returns the next part for a thread, of the queue that it is at if there is one. Otherwise it goes to the queue
// that has most for each of its threads, among those of nodes that it may run on. There is none once ctx has ended.
func (c *crew) take(ctx context.Context, at *queue, cpus []int) (q *queue, p part, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.err != nil {
		return nil, p, false
	}
	if q = at; q == nil || len(q.left) == 0 {
		if q = c.longest(cpus); q == nil {
			return nil, p, false
		}
		q.workers++
		if at != nil {
			at.workers--
		}
	}
	p, q.left = q.left[0], q.left[1:]
	return q, p, true
}

func (c *crew) longest(cpus []int) (best *queue) {
	share := func(q *queue) int { return len(q.left) / (q.workers + 1) }
	for _, q := range c.queues {
		if len(q.left) > 0 && len(common(q.cpus, cpus)) > 0 && (best == nil || share(q) > share(best)) {
			best = q
		}
	}
	return best
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live--; c.live == 0 {
		close(c.ended)
	}
}

// fail has all threads end.
func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *crew) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// wait waits for what threads have begun.
func (c *crew) wait() { c.running.Wait() }

// tell tells of progress.
func (c *crew) tell() {
	if c.opt.Progress != nil {
		c.opt.Progress(c.done.Load())
	}
}

// bind binds the calling thread to processors, to home if that is among them. If it fails, the kernel chooses.
func bind(cpus []int, home int) {
	if slices.Contains(cpus, home) {
		cpus = []int{home}
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	_ = unix.SchedSetaffinity(0, &set)
}

// common returns the processors of a list that are among others.
func common(list, others []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(cpu int) bool { return !slices.Contains(others, cpu) })
}
