package pipe

import (
	"context"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// Device is what a transfer does its steps with. One goroutine calls Fetch, Register, Post and Release, and needs one
// pinwheel.Thread. Another may call the other methods at the same time.
type Device interface {
	// Fetch copies the bytes of a chunk into its slot of the ring, or makes sure that the file still has what is mapped.
	// It returns how many bytes there were.
	Fetch(Chunk) (n int64, err error)
	// Register makes the memory of a chunk usable by the device, until Release. If it fails with verbs.ErrBusy, it is
	// called again after a pause.
	Register(Chunk) error
	// Post gives a chunk to the device. If it returns nil, a Completion of the chunk must follow, whatever happens. If it
	// fails with verbs.ErrBusy, it is called again: after the next completion, or after a pause if none is to come.
	Post(Chunk) error
	// Cancel has what was posted complete soon, with an error unless it has arrived, also what is being posted. No Post
	// begins after it.
	Cancel(cause error)
	// Release ends the use that Register began. It has to cope with its errors by itself.
	Release(Chunk)
	// Completed returns the completion of a chunk that no earlier call has returned, and false if there is none.
	Completed() (Completion, bool)
	// Wait waits until Completed would return one, or Wake was called since Wait has last returned. It may also return
	// without a reason. Run calls it where it calls Completed.
	Wait()
	// Wake has Wait return. Any goroutine may call it, also when Run has returned.
	Wake()
}

// Completion says that the device no longer reads the memory of a chunk that was posted.
type Completion struct {
	Chunk Chunk
	Err   error
}

// Times is how long the steps of a transfer took. Steps overlap, so that their sum may be longer than Wall.
type Times struct {
	Wall, Fetch, Register, Post, Release time.Duration
	Sending                              time.Duration // while anything was posted
}

// retryPause is the pause before what failed with verbs.ErrBusy is tried again.
const retryPause = 5 * time.Millisecond

// Inbox has the completions of one transfer, for a Device to embed. All methods are safe for concurrent use.
type Inbox struct {
	completions chan Completion
	woken       chan struct{}
}

// NewInbox returns an Inbox for a transfer that posts so many chunks at a time at most.
func NewInbox(depth int) Inbox {
	return Inbox{make(chan Completion, depth), make(chan struct{}, 1)}
}

// Put adds a completion. There is room for it: the poller of a device serves many transfers, and waits for none.
func (b Inbox) Put(c Completion) {
	b.completions <- c
	b.Wake()
}

// Completed is that of Device.
func (b Inbox) Completed() (c Completion, ok bool) {
	select {
	case c = <-b.completions:
		return c, true
	default:
		return c, false
	}
}

// Wait is that of Device.
func (b Inbox) Wait() { <-b.woken }

// Wake is that of Device.
func (b Inbox) Wake() {
	select {
	case b.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// Run does a transfer with a device and returns when nothing of it is under way any more: with nil, with the first
// error, or, if ctx ended it, with the cause of that. It ends no sooner than the device has completed what was posted.
func Run(ctx context.Context, p *Pipe, d Device) (Times, error) {
	r := &runner{pipe: p, device: d, worker: make(chan struct{}, 1)}
	began := time.Now()
	var worker sync.WaitGroup
	if p.shape.Ahead > 0 {
		worker.Go(func() {
			defer d.Wake() // all may be over
			for r.work(Worker) {
				<-r.worker
			}
		})
	}
	defer context.AfterFunc(ctx, d.Wake)()
	var pause *time.Timer
	var passed atomic.Bool
	for ended := false; r.work(Server); {
		if pause == nil && r.busy() {
			pause = time.AfterFunc(retryPause, func() {
				passed.Store(true)
				d.Wake()
			})
		}
		d.Wait()
		for c, ok := d.Completed(); ok; c, ok = d.Completed() {
			r.completed(c)
		}
		if passed.Swap(false) {
			pause = nil
			r.again()
		}
		if !ended && ctx.Err() != nil {
			ended = true
			r.stop(context.Cause(ctx))
			d.Cancel(context.Cause(ctx))
		}
	}
	worker.Wait()
	r.times.Wall = time.Since(began)
	return r.times, p.Err()
}

// runner lends the Pipe to one thread at a time.
type runner struct {
	device Device
	worker chan struct{} // wakes the worker

	// mu is held for decisions, never for a step.
	mu    sync.Mutex
	pipe  *Pipe
	times Times
	since time.Time // when something was posted after everything had completed
}

// work does all steps that there are now. It returns false when the transfer is finished.
func (r *runner) work(t Thread) bool {
	for {
		r.mu.Lock()
		step, ok := r.pipe.Next(t)
		finished, busy := r.pipe.Finished(), r.pipe.Busy()
		r.mu.Unlock()
		if !ok {
			if t == Worker && busy {
				r.device.Wake() // for the pause
			}
			return !finished
		}
		r.do(step)
	}
}

// do does a step.
func (r *runner) do(s Step) {
	var n int64
	var err error
	began := time.Now()
	switch s.Kind {
	case Fetch:
		n, err = r.device.Fetch(s.Chunk)
	case Register:
		err = r.device.Register(s.Chunk)
	case Post:
		err = r.device.Post(s.Chunk)
	case Release:
		r.device.Release(s.Chunk)
	}
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.times.of(s.Kind) += took
	if s.Kind == Post && err == nil && r.pipe.Outstanding() == 0 {
		r.since = began
	}
	r.pipe.Done(s, n, err)
}

func (r *runner) completed(c Completion) {
	r.mu.Lock()
	r.pipe.Completed(c.Chunk, c.Err)
	if r.pipe.Outstanding() == 0 {
		r.times.Sending += time.Since(r.since)
	}
	r.mu.Unlock()
	r.wakeWorker()
}

func (r *runner) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pipe.Busy()
}

func (r *runner) again() {
	r.mu.Lock()
	r.pipe.Again()
	r.mu.Unlock()
	r.wakeWorker()
}

func (r *runner) stop(err error) {
	r.mu.Lock()
	r.pipe.Stop(err)
	r.mu.Unlock()
	r.wakeWorker()
}

// wakeWorker follows every change, so that the worker does not wait for what has happened.
func (r *runner) wakeWorker() {
	select {
	case r.worker <- struct{}{}:
	default: // it will look anyway
	}
}

func (t *Times) of(k Kind) *time.Duration {
	return [...]*time.Duration{&t.Fetch, &t.Register, &t.Post, &t.Release}[k]
}
