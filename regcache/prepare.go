package regcache

import (
	"context"
	"errors"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// ErrNotKept means that memory is registered for single uses only: the cache can't share these rights, or can't notice
// that the mapping changes.
var ErrNotKept = errors.New("regcache: this memory is registered for each use, and not kept registered")

// Prepare registers r ahead of its first use and keeps it registered, as Acquire and Release do, but is no use itself.
// It fails as Acquire does, with ErrNotKept, and with the error of ctx. Then it has registered nothing.
//
// touch provides the pages before the provider pins them, which may take minutes. It is called without a lock, once
// room is reserved below every limit and changes of the mapping are noticed, with the pages of r or of the region that
// stands for r. If r is registered already it is not called.
//
// A call of the provider can't be cut short. If ctx ends meanwhile, Prepare deregisters afterwards, unless somebody
// uses the memory by then.
func (c *Cache) Prepare(ctx context.Context, r mem.Range, a verbs.Access, touch func(mem.Range) error) error {
	p, err := pages(r)
	if err != nil {
		return err
	}
	q := &request{local: c.shared, pages: p, access: a, ahead: &ahead{ctx, touch}}
	c.mu.Lock()
	defer c.unlock()
	_, err = c.serveUnlocking(q)
	return err
}

// ahead is what a request has whose memory is registered ahead of any use.
type ahead struct {
	ctx   context.Context
	touch func(mem.Range) error
}

// ended is closed when nobody wants the memory any more.
func (a *ahead) ended() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.ctx.Done()
}

func (a *ahead) err() error {
	if a == nil {
		return nil
	}
	return a.ctx.Err()
}

// touchUnlocking provides the pages of a region that is about to be registered.
func (c *Cache) touchUnlocking(g *region, a *ahead) error {
	if a == nil {
		return nil
	}
	return c.withoutLock(func() error { return a.touch(g.rng) })
}

// withdrawAheadUnlocking releases what was registered for a request that has ended meanwhile, unless it is in use.
func (c *Cache) withdrawAheadUnlocking(g *region, a *ahead) error {
	err := a.err()
	if c.tryClose(g) {
		err = errors.Join(err, c.releaseUnlocking(g))
	}
	return err
}
