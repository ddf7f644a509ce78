package pipe

import (
	"context"
	"time"

	"go.uber.org/atomic"
)

// Device is what a transfer does its steps with. One goroutine calls all methods but Wake, and needs one
// pinwheel.Thread.
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
	// Completed returns the completion of a chunk that no earlier call has returned, and false if there is none.
	Completed() (Completion, bool)
	// Wait waits until Completed would return one, or Wake was called since Wait has last returned. It may also return
	// without a reason.
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
//
// One goroutine does all of it, as the loop of section 3.3 does: it registers the next chunk while the device sends
// those before. A second one that registers would have to be woken for each chunk, which takes longer than to register a
// small one, and gains nothing with large ones (results/files/README.md).
func Run(ctx context.Context, p *Pipe, d Device) (Times, error) {
	r := &runner{pipe: p, device: d}
	began := time.Now()
	defer context.AfterFunc(ctx, d.Wake)()
	var pause *time.Timer
	var passed atomic.Bool
	for ended := false; r.work(); {
		if pause == nil && p.Busy() {
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
			p.Again()
		}
		if !ended && ctx.Err() != nil {
			ended = true
			p.Stop(context.Cause(ctx))
			d.Cancel(context.Cause(ctx))
		}
	}
	r.times.Wall = time.Since(began)
	return r.times, p.Err()
}

// runner does the steps of a Pipe.
type runner struct {
	device Device
	pipe   *Pipe
	times  Times
	since  time.Time // when something was posted after everything had completed
}

// work does all steps that there are now. It returns false when the transfer is finished.
func (r *runner) work() bool {
	for s, ok := r.pipe.Next(); ok; s, ok = r.pipe.Next() {
		r.do(s)
	}
	return !r.pipe.Finished()
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
		if err = r.device.Post(s.Chunk); err == nil && r.pipe.Outstanding() == 0 {
			r.since = began
		}
	case Release:
		r.device.Release(s.Chunk)
	}
	*r.times.of(s.Kind) += time.Since(began)
	r.pipe.Done(s, n, err)
}

func (r *runner) completed(c Completion) {
	r.pipe.Completed(c.Chunk, c.Err)
	if r.pipe.Outstanding() == 0 {
		r.times.Sending += time.Since(r.since)
	}
}

func (t *Times) of(k Kind) *time.Duration {
	return [...]*time.Duration{&t.Fetch, &t.Register, &t.Post, &t.Release}[k]
}
