// Package handle keeps the registrations of a provider under their handles: numbers that
// name a registration until it is deregistered, once, and that never name another one. It
// also keeps the provider's calls apart from its end.
//
// # Caveats
//
// A handle is a slot and the slot's generation, so a region deregistered
// twice is recognised even when its slot holds another region by then. The
// generation has 32 bits: a handle kept while its own slot is reused 2^31
// times would name the wrong value. The handles of two tables are alike: one
// does not recognise those of the other.
package handle

import (
	"sync"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Table maps handles to what a provider keeps of a registration. The zero value is empty
// and ready for use; all methods are safe for concurrent use.
type Table[T any] struct {
	// life is held for reading during every call of the provider and for writing by
	// Close, so that Close waits for calls under way. Taken before all other locks.
	life   sync.RWMutex
	closed bool

	// mu is a leaf lock, held for a few loads and stores.
	mu    sync.Mutex
	slots []slot[T]
	free  []uint32 // slots without a value
}

type slot[T any] struct {
	value   T
	gen     uint32 // odd while the slot holds a value
	claimed bool   // being deregistered
}

// Enter begins a call of the provider, which Leave ends. It fails with verbs.ErrClosed,
// about op and r, once Close was called.
func (t *Table[T]) Enter(op string, r mem.Range) error {
	t.life.RLock()
	if t.closed {
		t.life.RUnlock()
		return &verbs.Error{Op: op, Range: r, Kind: verbs.ErrClosed}
	}
	return nil
}

// Leave ends what Enter began.
func (t *Table[T]) Leave() { t.life.RUnlock() }

// Close waits for the calls under way, ends all later ones, and calls end. A second Close
// calls end again.
func (t *Table[T]) Close(end func() error) error {
	t.life.Lock()
	defer t.life.Unlock()
	t.closed = true
	return end()
}

// Put stores v and returns its handle, which is never zero.
func (t *Table[T]) Put(v T) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		t.free = append(t.free, uint32(len(t.slots)))
		t.slots = append(t.slots, slot[T]{})
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	s := &t.slots[i]
	s.value = v
	s.gen++
	return uint64(s.gen)<<32 | uint64(i)
}

// Get returns the value of a handle; false if it was never given out, or is removed or
// being deregistered.
func (t *Table[T]) Get(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(h); s != nil && !s.claimed {
		return s.value, true
	}
	return v, false
}

// Deregister is a provider's call op for the region g. Of several calls for the same region
// one calls release; the others fail with verbs.ErrUnknownRegion. If release fails, the
// region stays registered.
func (t *Table[T]) Deregister(op string, g verbs.Region, release func(T) error) error {
	if err := t.Enter(op, g.Range); err != nil {
		return err
	}
	defer t.Leave()
	v, ok := t.claim(g.Handle)
	if !ok {
		return &verbs.Error{Op: op, Range: g.Range, Kind: verbs.ErrUnknownRegion}
	}
	err := release(v)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.find(g.Handle).claimed = false
		return err
	}
	t.remove(g.Handle)
	return nil
}

// claim is Get for who is about to remove the value, and hides it from all others.
func (t *Table[T]) claim(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(h)
	if s == nil || s.claimed {
		return v, false
	}
	s.claimed = true
	return s.value, true
}

// Remove removes a handle that All has returned.
func (t *Table[T]) Remove(h uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(h)
}

func (t *Table[T]) remove(h uint64) {
	s := t.find(h)
	*s = slot[T]{gen: s.gen + 1}
	t.free = append(t.free, uint32(h))
}

// All returns what is held at this moment, by handle.
func (t *Table[T]) All() map[uint64]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[uint64]T{}
	for i := range t.slots {
		if s := &t.slots[i]; s.gen&1 == 1 {
			all[uint64(s.gen)<<32|uint64(i)] = s.value
		}
	}
	return all
}

// find returns the occupied slot of h. The caller holds mu.
func (t *Table[T]) find(h uint64) *slot[T] {
	i, gen := uint32(h), uint32(h>>32)
	if uint64(i) >= uint64(len(t.slots)) || gen&1 == 0 || t.slots[i].gen != gen {
		return nil
	}
	return &t.slots[i]
}
