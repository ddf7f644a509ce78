package pipe

import (
	"context"
	"sync"
	"time"
)

// Device is what a transfer does its steps with. One goroutine calls Fetch, Register and Release, and needs one
// pinwheel.Thread. Another may call Post and Cancel at the same time, for another chunk.
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
	// Cancel has what was posted complete soon, with an error unless it has arrived. Nothing is posted after it.
	Cancel(cause error)
	// Release ends the use that Register began. It has to cope with its errors by itself.
	Release(Chunk)
	// Completions returns the channel from which Run receives completions. It needs room for every chunk that is posted,
	// so that the poller of a device, which serves many transfers, never waits for one of them.
	Completions() <-chan Completion
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

// Run does a transfer with a device and returns when nothing of it is under way any more: with nil, with the first
// error, or, if ctx ended it, with the cause of that. It ends no sooner than the device has completed what was posted.
func Run(ctx context.Context, p *Pipe, d Device) (Times, error) {
	r := &runner{pipe: p, device: d}
	for i := range r.wake {
		r.wake[i] = make(chan struct{}, 1)
	}
	began := time.Now()
	var worker sync.WaitGroup
	if p.shape.Ahead > 0 {
		worker.Go(func() {
			for r.work(Worker) {
				<-r.wake[Worker]
			}
		})
	}
	done, completions := ctx.Done(), d.Completions()
	var again <-chan time.Time
	for r.work(Server) {
		if again == nil && r.busy() {
			again = time.After(retryPause)
		}
		select {
		case <-r.wake[Server]:
		case c := <-completions:
			r.completed(c)
		case <-again:
			again = nil
			r.again()
		case <-done:
			done = nil
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
	wake   [2]chan struct{} // by thread: something has changed

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
		finished := r.pipe.Finished()
		r.mu.Unlock()
		if !ok {
			return !finished
		}
		r.do(step)
		r.wakeOther(t)
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
	r.wakeOther(Server)
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
	r.wakeOther(Server)
}

func (r *runner) stop(err error) {
	r.mu.Lock()
	r.pipe.Stop(err)
	r.mu.Unlock()
	r.wakeOther(Server)
}

// wakeOther follows every change, so that no thread waits for what has happened.
func (r *runner) wakeOther(t Thread) {
	select {
	case r.wake[1-t] <- struct{}{}:
	default: // it will look anyway
	}
}

func (t *Times) of(k Kind) *time.Duration {
	return [...]*time.Duration{&t.Fetch, &t.Register, &t.Post, &t.Release}[k]
}
