// Package handle gives providers the handles of their regions: numbers that
// name a value until it is taken out, once, and that never name another value.
//
// # Caveats
//
// A handle is a slot and the slot's generation, so a region deregistered
// twice is recognised even when its slot holds another region by then. The
// generation has 32 bits: a handle kept while its own slot is reused 2^31
// times would name the wrong value. The handles of two tables are alike: one
// does not recognise those of the other.
package handle

import "sync"

// Table maps handles to values. The zero value is empty and ready for use;
// all methods are safe for concurrent use. No method calls out.
type Table[T any] struct {
	// mu is a leaf lock, held for a few loads and stores.
	mu    sync.Mutex
	slots []slot[T]
	free  []uint32 // slots without a value
}

type slot[T any] struct {
	value   T
	gen     uint32 // odd while the slot holds a value
	claimed bool   // to be taken or restored by somebody
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

// Get returns the value of a handle; false if it was never given out, or is
// taken or claimed.
func (t *Table[T]) Get(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(h); s != nil && !s.claimed {
		return s.value, true
	}
	return v, false
}

// Claim is Get for somebody who is about to remove the value, and hides it
// from all others. Of several calls with the same handle exactly one returns
// true; Take or Restore must follow.
func (t *Table[T]) Claim(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(h)
	if s == nil || s.claimed {
		return v, false
	}
	s.claimed = true
	return s.value, true
}

// Restore gives a claim up: the handle is valid as before.
func (t *Table[T]) Restore(h uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(h); s != nil {
		s.claimed = false
	}
}

// Take removes a handle, claimed or not, and returns its value. Of several
// calls with the same handle exactly one returns true.
func (t *Table[T]) Take(h uint64) (v T, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(h)
	if s == nil {
		return v, false
	}
	v = s.value
	*s = slot[T]{gen: s.gen + 1}
	t.free = append(t.free, uint32(h))
	return v, true
}

// All returns what is held at this moment, claimed or not, by handle.
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
