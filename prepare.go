package pinwheel

import (
	"context"
	"errors"

	"pinwheel/internal/engine"
	"pinwheel/internal/prefault"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// PrepareOptions say how Manager.Prepare provides pages. The zero value is useful.
type PrepareOptions struct {
	// Threads is how many threads provide pages, at most as many as the calling thread may use processors: a goroutine
	// that has not locked its thread may use all of the process's. 0 stands for one thread in place of the caller, and
	// one on each other core that is idle.
	Threads int
	// Progress is called by Prepare with the bytes whose pages are there so far, up to all, some hundred times. It must
	// not use the memory that is being prepared through a Thread. nil: nobody asks.
	Progress func(done uint64)
}

// Prepared says what Manager.Prepare has done.
type Prepared struct {
	// Kept says that the memory is registered now, and stays so as after a use. It does not where each use registers for
	// itself: under policy OnDemand, with Options.Disable, after a fault, and where nobody notices that the mapping
	// changes. Then only the pages were provided.
	Kept       bool
	Threads    int   // that have provided pages; 0: the memory was registered already
	PrefaultNs int64 // until all pages were there
	RegisterNs int64 // for all else
}

// Prepare registers r with the rights a ahead of its first use: a large pool, for which that takes long. It first
// provides the pages with several threads, which a registration does with one, and then makes one registration, which
// is kept as after a use. It is none: the helper, which decides about memory that it saw used, hears nothing of it.
//
// Whether r fits below every limit is known before anything is touched, and so is whether all of it is mapped for a:
// Prepare fails with verbs.ErrPinnedMemory, verbs.ErrRegions or verbs.ErrRegionSize, or verbs.ErrNotMapped. What is in
// memory does not change, and other threads may use it meanwhile. A use through a Thread waits.
//
// When ctx ends or the Manager is closed, Prepare returns that error, after the threads have ended what they had begun: 32 MiB each. The
// registration itself can't be cut short; it is ended afterwards. If Prepare fails, nothing more is registered
// than before, but some pages may be there.
//
// Memory of a file for reading only is read, and not written to. r must be outside the Go heap. Do not unmap it
// before Prepare returns, though that does no more harm than an error.
func (m *Manager) Prepare(ctx context.Context, r mem.Range, a verbs.Access, o PrepareOptions) (p Prepared, err error) {
	defer m.contain(&err)
	if m.closed.Load() {
		return p, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.preparing, cancel)()
	cache := m.cache
	if m.opt.Disable || m.opt.Policy == OnDemand || m.plain.Load() {
		cache = nil
	}
	did, err := engine.Prepare(ctx, cache, m.provider.Limits(), r, a, prefault.Options{Threads: o.Threads, Progress: o.Progress})
	if m.closed.Load() && (err == nil || errors.Is(err, context.Canceled)) {
		err = ErrClosed // and if all was registered just before, it is deregistered
	}
	return Prepared(did), err
}
