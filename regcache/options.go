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
	// MaxBytes and MaxRegions bound all registrations together, including those
	// being made or released. They count as the kernel does: a page in two
	// registrations counts twice. 0 stands for the provider's limit (RLIMIT_MEMLOCK
	// where that applies), mem.Unlimited for no limit. Group limits the process.
	MaxBytes   int64
	MaxRegions int64
	// KnownRegions bounds the number of regions that the cache remembers,
	// registered or not. It forgets the absent region that was released longest
	// ago. 0 stands for 65536.
	KnownRegions int
	// AnyCovering lets any registered region that covers a request serve it; the
	// request itself is not remembered. This is for users without a helper thread:
	// slices of a large buffer then hit without ever taking a lock.
	AnyCovering bool
	// Watcher reports changed mappings. Without one, the caller must Invalidate.
	Watcher Watcher
	// OnFault receives panics of the provider and the watcher, which the cache has
	// contained: it undid the operation, or failed it with ErrFault. It is called
	// without a lock held, by a call that was under way at the time, and perhaps
	// often. TryRegister and TryDeregister return faults instead. nil ignores them.
	OnFault func(*fault.Fault)
	// OnPublish allows C threads to register first uses by themselves (grant.h), where nothing is
	// limited and Watcher is a GrantWatcher. It receives each when the cache publishes it, without a lock
	// held. nil: they may not.
	OnPublish func(Published)
	// Fallback says that the caller registers by itself what the provider refuses. The cache then remembers
	// which memory can't be registered with which rights, until its mapping changes, and repeats the error. It
	// tries again only now and then.
	Fallback bool
	// Group shares limits and evictions with other caches of the process, one
	// for each protection domain. May be nil.
	Group *Group
	// Confined promises that only one goroutine at a time uses the cache, and that
	// the goroutines synchronise among themselves. It saves the memory barriers, and
	// makes recency exact to the single use.
	Confined bool
}

// EnsureDefaults replaces zeros by the defaults.
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
	// Hit means that a registration covered the request.
	Hit Outcome = iota
	// Waited means that another thread was registering the region, and succeeded.
	Waited
	// First means that this call registered it, and that some page had never been registered with these rights.
	First
	// Late means that this call registered it, although every page had been registered with them before.
	Late
)

// IsLate reports whether the use was late: it had to register again what had been registered before, or to wait for a
// registration under way.
func (o Outcome) IsLate() bool { return o == Late || o == Waited }

var outcomeNames = [...]string{"hit", "waited", "first", "late"}

func (o Outcome) String() string { return outcomeNames[o] }

// Errors of calls that name a region by its ID.
var (
	// ErrInUse means that the region has references, or is being registered. Nothing was changed.
	ErrInUse = errors.New("regcache: region in use")
	// ErrUnknown means that the region was merged into another, invalidated or forgotten. Drop its ID.
	ErrUnknown = errors.New("regcache: region unknown")
)

// Errors of any call.
var (
	// ErrClosed means that the cache was closed.
	ErrClosed = errors.New("regcache: cache is closed")
	// ErrFault means that the provider or the watcher panicked. The cache goes on.
	ErrFault = fault.Err
)

// limitError refuses a registration because of our own limit. It matches
// verbs.ErrPinnedMemory or verbs.ErrRegions, like a refusal by the provider.
type limitError struct {
	rng          mem.Range
	kind         error
	whose        string
	limits, used Usage
}

func (e *limitError) Error() string {
	return fmt.Sprintf("regcache: no room for %v in %s: %v registered, limit %v: %v",
		e.rng, e.whose, e.used, e.limits, e.kind)
}

func (e *limitError) Unwrap() error { return e.kind }
