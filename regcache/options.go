package regcache

import (
	"errors"
	"fmt"

	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// Options configure a Cache. The zero value takes the provider's limits.
type Options struct {
	// MaxBytes and MaxRegions bound what is registered, registering and
	// draining together, as the kernel counts: a page in two registrations
	// counts twice. 0 stands for the provider's limit (which is RLIMIT_MEMLOCK
	// where that applies), mem.Unlimited for none. For limits of the process see Group.
	MaxBytes   int64
	MaxRegions int64
	// KnownRegions bounds the regions remembered, registered or not; the
	// absent one that was released first is forgotten first. 0 stands for 65536.
	KnownRegions int
	// AnyCovering serves a request by any registered region that covers it,
	// without remembering the request itself. For users without a helper thread:
	// slices of a large buffer then hit without ever taking a lock.
	AnyCovering bool
	// Watcher tells of changed mappings. Without one, the caller must Invalidate.
	Watcher Watcher
	// OnFault is told of panics of the provider and the watcher. They were
	// contained: what they happened in was undone, or failed with ErrFault. It is
	// called without a lock held, by a call that was under way at the time, and may
	// be called often; TryRegister and TryDeregister return faults instead. nil: ignored.
	OnFault func(*fault.Fault)
	// Group shares limits and evictions with other caches of the process, one
	// for each protection domain. May be nil.
	Group *Group
	// Confined promises that only one goroutine at a time uses the cache, and
	// that the goroutines agree among themselves on who does. It saves the
	// memory barriers, and makes recency exact to the single use.
	Confined bool
}

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults(limits verbs.Limits) {
	if o.MaxBytes == 0 {
		o.MaxBytes = limits.MaxPinnedBytes
	}
	if o.MaxRegions == 0 {
		o.MaxRegions = limits.MaxRegions
	}
	if o.KnownRegions == 0 {
		o.KnownRegions = 1 << 16
	}
}

// Outcome says how a request was served.
type Outcome uint8

const (
	// Hit: it was registered.
	Hit Outcome = iota
	// Waited: another thread was registering it, and did.
	Waited
	// First: registered by this call; some page of it never was before.
	First
	// Late: registered by this call, although every page had been registered before.
	Late
)

var outcomeNames = [...]string{"hit", "waited", "first", "late"}

func (o Outcome) String() string { return outcomeNames[o] }

// What a call on a region by its ID can fail with.
var (
	// ErrInUse: the region has references, or is being registered for somebody. Nothing was changed.
	ErrInUse = errors.New("regcache: region in use")
	// ErrUnknown: the region was merged into another, invalidated or forgotten; drop its ID.
	ErrUnknown = errors.New("regcache: region unknown")
)

// What any call can fail with.
var (
	// ErrClosed: the cache was closed.
	ErrClosed = errors.New("regcache: cache is closed")
	// ErrFault: the provider or the watcher panicked. The cache goes on.
	ErrFault = fault.Err
)

// limitError is a registration refused because of our own limit. It matches
// verbs.ErrPinnedMemory or verbs.ErrRegions, like a refusal by the provider.
type limitError struct {
	rng          mem.Range
	kind         error
	whose        string
	limits, used Usage
}

func (e *limitError) Error() string {
	return fmt.Sprintf("regcache: no room for %v in %s: %v registered, limit %v: %v", e.rng, e.whose, e.used, e.limits, e.kind)
}

func (e *limitError) Unwrap() error { return e.kind }
