package vmwatch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"pinwheel/mem"
)

var (
	// ErrNotCacheable is returned by Watch for a range whose changes the
	// mechanism can neither see nor verify: register it for each operation.
	ErrNotCacheable = errors.New("vmwatch: changes of this range can't be seen (register it for each operation)")
	// ErrForeign is returned by Pinned for a range that has no pages of this process, as memory of a GPU: nothing that is
	// watched changes when it is freed. It is an ErrNotCacheable.
	ErrForeign = fmt.Errorf("%w: it has no pages of this process (memory of a device?)", ErrNotCacheable)
	// ErrUnavailable is returned by Open when the mechanism asked for doesn't work here.
	ErrUnavailable = errors.New("vmwatch: mechanism not available")
	// ErrMechanism is returned by Open for a mechanism that doesn't exist.
	ErrMechanism = errors.New("vmwatch: no such mechanism")
)

// Watcher follows the changes of this process's mappings. All methods are safe
// for concurrent use, except that Close must come after all others.
type Watcher struct {
	source *source
	gen    *uint64      // the source's word, which BPF programs or the reader write: raw, for sync/atomic
	frames *frameReader // the source's
	report Report
	// onRefused hears of the first range that is refused with ErrCrowded, and with ErrForeign. Guarded by mu.
	onRefused        func(string)
	crowded, foreign bool // it has heard

	// mu is never held across a registration, and only for the look-up on the
	// path of a hit that must be verified. source.mu is taken inside it.
	mu      sync.Mutex
	regions map[uint64]*region
	absent  map[mem.Range]bool // registered lately without getting pages; see Pinned
	last    uint64             // last token given
	seen    uint64             // the source's records that Drain has reported
}

func newWatcher(s *source) *Watcher {
	w := &Watcher{source: s, gen: still(), frames: s.frames, regions: map[uint64]*region{}, absent: map[mem.Range]bool{}}
	if s.note != nil {
		w.gen, w.seen = s.note.word(), s.note.first()
	}
	return w
}

// region is one watched range.
type region struct {
	r      mem.Range // whole pages
	verify verifier  // nil if notification is enough
	armed  bool
	since  uint64 // the generation before it was armed
}

// verifier checks at a hit that a range still is what was pinned.
type verifier interface {
	pinning()
	pinned() error
	unchanged() bool
}

// Mechanism returns the chosen mechanism.
func (w *Watcher) Mechanism() Mechanism { return w.source.mechanism }

// Report returns which mechanisms were tried, which one was chosen, and its gaps.
func (w *Watcher) Report() Report { return w.report }

// Generation returns the change counter, by one atomic load. While it equals the result of the
// last Drain, no watched range has changed, except for ranges that must be verified (see Watch).
func (w *Watcher) Generation() uint64 { return atomic.LoadUint64(w.gen) }

// Word returns the address of the counter, for C. It lies outside the Go heap
// and stays readable for as long as the Watcher can be reached, even after Close.
func (w *Watcher) Word() *uint64 { return w.gen }

// Watch begins to watch the whole pages of r. Watched ranges may overlap or be equal. With verify,
// call Unchanged at each hit, and Pinning and Pinned around each registration. Watch fails
// with ErrNotCacheable, and with mem.ErrEmpty or mem.ErrOverflow for a range that can't be
// mapped. It makes system calls, which take a few microseconds; its memory and time depend on
// the mappings in r, not on r's length.
func (w *Watcher) Watch(r mem.Range) (token uint64, verify bool, err error) {
	if r.Empty() {
		return 0, false, fmt.Errorf("watch: %w", mem.ErrEmpty)
	}
	if _, err := mem.NewRange(r.Start, r.Len()); err != nil {
		return 0, false, fmt.Errorf("watch: %w", err)
	}
	reg := &region{r: r.PageAligned()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.admit(reg); err != nil {
		return 0, false, fmt.Errorf("watch %v: %w", r, err)
	}
	w.last++
	w.regions[w.last] = reg
	return w.last, reg.verify != nil, nil
}

// admit decides how reg is watched and arms it. w.mu is held.
func (w *Watcher) admit(reg *region) error {
	if w.source.mechanism.notifiedOf(reg.r) {
		reg.since = w.Generation()
		v, err := w.source.arm(reg.r)
		if err == nil {
			reg.verify, reg.armed = v, true
			return nil
		}
		if errors.Is(err, ErrCrowded) {
			w.tellOnce(&w.crowded, err.Error()+": some memory is registered for each use")
		}
		return fmt.Errorf("%w: %w", ErrNotCacheable, err)
	}
	if w.frames == nil {
		return ErrNotCacheable
	}
	reg.verify = w.frames.verifier(reg.r)
	return nil
}

// tellOnce tells of the first range that is refused for a reason. w.mu is held.
func (w *Watcher) tellOnce(told *bool, message string) {
	if !*told && w.onRefused != nil {
		w.onRefused(message)
	}
	*told = true
}

// Interest returns counts by which C code begins to watch a range that it is about to register
// (regcache/grant.h says how); nil if the mechanism has none. They lie outside the Go heap, and stay for
// as long as the Watcher can be reached, even after Close.
func (w *Watcher) Interest() *uint32 {
	if n, ok := w.source.note.(interested); ok {
		return &n.interests()[0]
	}
	return nil
}

// Records returns the first word of the log of what each step of the Generation changed, for C (struct pwt_change of
// regcache/table.h); nil if the mechanism has none. It stays for as long as Interest.
func (w *Watcher) Records() *uint64 {
	if n, ok := w.source.note.(interested); ok {
		return n.records()
	}
	return nil
}

// Uninterest ends the watch of a range that C code has begun by Interest.
func (w *Watcher) Uninterest(r mem.Range) {
	if n, ok := w.source.note.(interested); ok {
		n.interests().remove(r)
	}
}

// ChangedSince reports whether any part of r changed since the Generation had a certain value, as far as r
// has been watched. It may say so of a range that did not change.
func (w *Watcher) ChangedSince(generation uint64, r mem.Range) (changed bool) {
	if w.source.note == nil {
		return true
	}
	_, overrun := w.source.note.drain(generation, func(o mem.Range) { changed = changed || o.Overlaps(r) })
	return changed || overrun
}

// Changes calls changed once for each step of the Generation from a certain value on, in order, with what changed then:
// memory that is watched, or that C code counts by Interest, and perhaps other memory nearby; mostly twice. next is the
// value up to which it has done so. It has missed some if all is false, and if the mechanism has no Interest it can't tell.
func (w *Watcher) Changes(from uint64, changed func(mem.Range)) (next uint64, all bool) {
	if w.Interest() == nil {
		return from, false
	}
	next, overrun := w.source.note.drain(from, changed)
	return next, !overrun
}

// Unwatch ends the watch of a range. Call it once for each token, after the range was
// deregistered.
func (w *Watcher) Unwatch(token uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reg := w.regions[token]
	if reg == nil {
		return
	}
	delete(w.regions, token)
	if reg.armed {
		w.source.disarm(reg.r, reg.verify)
	}
}

func (w *Watcher) region(token uint64) *region {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.regions[token]
}

// Pinning must be called before each registration of a range that needs verification.
func (w *Watcher) Pinning(token uint64) {
	if reg := w.region(token); reg != nil && reg.verify != nil {
		reg.verify.pinning()
	}
}

// Pinned must be called after the first registration of a range since Watch, and after each of a range that needs
// verification. If it fails, the registration must not be kept: with mem.ErrChanged another try may
// succeed, with ErrForeign none will until the mapping changes. It takes a microsecond for 64 KiB, and
// some 10 ns for each further page.
//
// A free that is told of before it happens, and again after it, may take the pages of a range that was watched and
// registered in between, and Pinned may look before it is told of again. So only a range that is registered twice in
// succession without getting pages is a device's.
func (w *Watcher) Pinned(token uint64) error {
	reg := w.region(token)
	switch {
	case reg == nil:
		return nil
	case reg.verify != nil:
		return reg.verify.pinned()
	case w.source.pages.areOurs(reg.r):
		w.hasPages(reg.r)
		return nil
	case w.ChangedSince(reg.since, reg.r) || !w.lacksPagesAgain(reg.r):
		return fmt.Errorf("pinned %v: %w", reg.r, mem.ErrChanged)
	}
	return fmt.Errorf("pinned %v: %w", reg.r, ErrForeign)
}

// maxAbsent bounds how many ranges without pages are remembered.
const maxAbsent = 64

func (w *Watcher) hasPages(r mem.Range) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.absent, r)
}

// lacksPagesAgain reports whether r had no pages the last time, either, and tells of it.
func (w *Watcher) lacksPagesAgain(r mem.Range) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.absent[r] {
		w.tellOnce(&w.foreign, "memory of a device, as a GPU's, is registered for each use: nothing tells when it is freed")
		return true
	}
	if len(w.absent) == maxAbsent {
		clear(w.absent)
	}
	w.absent[r] = true
	return false
}

// Unchanged reports whether the range still has the pages that it had when Pinned was called. It
// makes a system call, which takes about 1 us for 64 KiB, for ranges that need verification
// only.
func (w *Watcher) Unchanged(token uint64) bool {
	reg := w.region(token)
	return reg == nil || reg.verify == nil || reg.verify.unchanged()
}

// everything is reported if some changes are not known.
var everything = mem.Range{Start: 0, End: ^mem.Addr(0)}

// Drain calls drop with every range that changed since the last Drain, in any order. A range may
// be larger than the change; if some changes are not known, it is the whole address space.
// Drain returns the Generation up to which it has reported all changes. Only one goroutine may
// drain. drop runs under the Watcher's lock and must not call the Watcher.
func (w *Watcher) Drain(drop func(mem.Range)) (generation uint64) {
	if w.source.note == nil {
		return w.Generation()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	generation = w.Generation() // what changes from here on moves the word again
	var overrun bool
	if w.seen, overrun = w.source.note.drain(w.seen, drop); overrun {
		drop(everything)
	}
	return generation
}

// Close removes everything from the kernel, with the last Watcher of the
// process that uses the mechanism. No other method may run or be called any more.
func (w *Watcher) Close() error {
	w.mu.Lock()
	for token, reg := range w.regions {
		if reg.armed {
			w.source.disarm(reg.r, reg.verify)
		}
		delete(w.regions, token)
	}
	w.mu.Unlock()
	return w.source.release()
}
