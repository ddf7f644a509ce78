package transfer

import (
	"context"
	"errors"
	"io/fs"
	"sync"
)

// largeWorkers copy large files, each of which has many chunks under way.
const largeWorkers = 2

// tree copies a file or a tree. Whoever makes one ends it.
type tree struct {
	counts
	options      Options
	ctx          context.Context
	end          context.CancelCauseFunc
	small, large *queue
}

func newTree(ctx context.Context, o Options) *tree {
	t := &tree{options: o, small: newQueue(), large: newQueue()}
	t.ctx, t.end = context.WithCancelCause(ctx)
	return t
}

// run does the first task and all that follow from it, so many of the small ones at a time, and returns why the copy
// ended too early.
func (t *tree) run(smallWorkers int, first func()) error {
	t.large.hold() // until no directory can bring large files any more
	t.small.push(first)
	var all sync.WaitGroup
	for range largeWorkers {
		all.Go(t.large.work)
	}
	var small sync.WaitGroup
	for range smallWorkers {
		small.Go(t.small.work)
	}
	small.Wait()
	t.large.release()
	all.Wait()
	return context.Cause(t.ctx)
}

// attributes are those that a directory gets when all is in it.
type attributes struct {
	name string // at the destination
	made bool   // by this copy
	info fs.FileInfo
}

// finished notes that a directory has its attributes, or why not. One that was there may be somebody else's.
func (t *tree) finished(d attributes, err error) {
	if d.made || !errors.Is(err, fs.ErrPermission) {
		t.fail(err)
	}
}

// ended tells whether a task has nothing to do any more.
func (t *tree) ended() bool { return t.ctx.Err() != nil }

// count counts a file that was copied.
func (t *tree) count(bytes, resumed int64) {
	t.files.Inc()
	t.bytes.Add(bytes)
	t.resumed.Add(resumed)
	t.options.Meter.Files.Inc()
}

// fail notes that something could not be copied. nil is no failure.
func (t *tree) fail(err error) {
	switch {
	case err == nil || t.ended(): // what follows from the first fatal error says nothing
	case fatal(err):
		t.end(err)
	default:
		t.failed.Inc()
		t.options.Failed(err)
	}
}
