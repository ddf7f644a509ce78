package transfer

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/files"
)

// maxRedialPause is the longest pause between two attempts to connect again; the first one is far shorter.
const maxRedialPause = time.Second

// Lost tells whether an error says that the server is gone, or the way to it: another connection may go on.
func Lost(err error) bool {
	return errors.Is(err, files.ErrPeerGone) || errors.Is(err, files.ErrNoRDMA)
}

// attempts has once copy by one client after the other, until the server is not lost, or nothing has moved for
// Options.Retry. What one attempt has copied, the next finds unchanged.
func (o Options) attempts(
	ctx context.Context, c *files.Client, once func(*files.Client, Options) (Result, error),
) (Result, error) {
	if o.Retry == 0 {
		return once(c, o)
	}
	o.made = &madeDirectories{}
	o.Failed = eachOnce(o.Failed)
	var total Result
	var end time.Time
	for {
		bytes, all := o.Meter.Bytes.Load(), o.Meter.TotalBytes.Load()
		r, err := once(c, o)
		total.add(r)
		if !Lost(err) || ctx.Err() != nil {
			return total, err
		}
		if s := c.Stats(); end.IsZero() || s.BytesRead+s.BytesWritten > 0 {
			end = time.Now().Add(o.Retry)
		}
		next, failed := o.redial(ctx, end)
		if next == nil {
			return total, orElse(failed, err)
		}
		c = next
		total.Reconnects++
		o.Meter.Bytes.Add(bytes - o.Meter.Bytes.Load()) // the next attempt counts what is there
		o.Meter.TotalBytes.Add(all - o.Meter.TotalBytes.Load())
	}
}

// redial connects again, until a time. It returns nil if there is no server then, and fails if there is one to which no
// later attempt would connect either.
func (o *Options) redial(ctx context.Context, end time.Time) (*files.Client, error) {
	within, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for pause := maxRedialPause / 16; ; pause = min(2*pause, maxRedialPause) {
		select {
		case <-time.After(pause):
		case <-within.Done():
			return nil, context.Cause(ctx)
		}
		c, err := o.Redial(within)
		switch {
		case err == nil:
			return c, nil
		case within.Err() != nil:
			return nil, context.Cause(ctx)
		case !Lost(err) && !errors.Is(err, syscall.EUSERS): // a server that was cut off may count the old connection still
			return nil, err
		}
	}
}

// add adds an attempt, which has seen what those before it have left.
func (r *Result) add(next Result) {
	next.Unchanged = max(next.Unchanged-r.Files, 0)
	next.Files += r.Files
	next.Bytes += r.Bytes
	next.ResumedBytes += r.ResumedBytes
	next.Retries += r.Retries
	next.Grown += r.Grown
	next.Reconnects = r.Reconnects
	next.Directories = max(next.Directories, r.Directories)
	next.Skipped = max(next.Skipped, r.Skipped)
	*r = next
}

// eachOnce hears of failures of several attempts, and tells of each once.
func eachOnce(failed func(error)) func(error) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(err error) {
		mu.Lock()
		before := told[err.Error()]
		told[err.Error()] = true
		mu.Unlock()
		if !before {
			failed(err)
		}
	}
}

// madeDirectories are those that some attempt has made: they get the modes of their sources, unlike those that were
// there. nil: there is one attempt. It is safe for concurrent use.
type madeDirectories struct{ names sync.Map }

// note tells whether this attempt has made a directory, or one before.
func (m *madeDirectories) note(name string, made bool) bool {
	if m == nil {
		return made
	}
	if made {
		m.names.Store(name, true)
		return true
	}
	_, before := m.names.Load(name)
	return before
}
