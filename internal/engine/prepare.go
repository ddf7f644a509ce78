package engine

import (
	"context"
	"errors"
	"fmt"

	"pinwheel/internal/clock"
	"pinwheel/internal/prefault"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// Prepared says what Prepare has done.
type Prepared struct {
	Kept       bool  // registered, and kept so; else only its pages were provided
	Threads    int   // that provided pages; 0 if nothing was to be done
	PrefaultNs int64 // until all pages were there
	RegisterNs int64 // for all else: room, the watch of the mapping, the registration
}

// Prepare provides the pages of r and registers it in a cache, or only provides them if c is nil, or can't keep it.
// What stays registered if it fails was so before. See regcache.Cache.Prepare and prefault.Run. l are the limits of
// whoever registers. o.Write is ignored: the rights say that.
func Prepare(
	ctx context.Context, c *regcache.Cache, l verbs.Limits, r mem.Range, a verbs.Access, o prefault.Options,
) (p Prepared, err error) {
	r, err = verbs.WholePages("registration ahead", r)
	if err != nil {
		return p, err
	}
	if r.Len() > uint64(l.MaxPinnedBytes) { // the kernel would provide pages until it kills a process
		op := fmt.Sprintf("registration ahead, where %s permits %s,", l.PinnedSource, mem.FormatBytes(uint64(l.MaxPinnedBytes)))
		return p, &verbs.Error{Op: op, Range: r, Kind: verbs.ErrPinnedMemory}
	}
	o.Write = a&(verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic) != 0
	touch := func(r mem.Range) error {
		startNs := clock.NowNs()
		n, err := prefault.Run(ctx, r, o)
		p.Threads = max(p.Threads, n)
		p.PrefaultNs += clock.NowNs() - startNs
		return err
	}
	startNs := clock.NowNs()
	err = regcache.ErrNotKept
	if c != nil {
		err = c.Prepare(ctx, r, a, touch)
	}
	p.Kept = err == nil
	if errors.Is(err, regcache.ErrNotKept) {
		err = nil
		if p.Threads == 0 {
			err = touch(r)
		}
	}
	p.RegisterNs = clock.NowNs() - startNs - p.PrefaultNs
	return p, err
}
