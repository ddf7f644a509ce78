package verbs

import (
	"errors"
	"syscall"

	"pinwheel/mem"
)

// Access says what a device may do with registered memory. The values are
// those of enum ibv_access_flags in <infiniband/verbs.h>, so that rdma-core
// needs no translation; local read is always allowed.
type Access uint32

const (
	AccessLocalWrite      Access = 1 << 0
	AccessRemoteWrite     Access = 1 << 1
	AccessRemoteRead      Access = 1 << 2
	AccessRemoteAtomic    Access = 1 << 3
	AccessOnDemand        Access = 1 << 6
	AccessRelaxedOrdering Access = 1 << 20
)

// Includes reports whether a region registered with access a may serve a
// request for access b: every right of b is there. Relaxed ordering and
// on-demand paging change what a region is, so they must be equal.
func (a Access) Includes(b Access) bool {
	const kind = AccessRelaxedOrdering | AccessOnDemand
	return a&b == b && a&kind == b&kind
}

// Region is one registration (memory region, MR). It is a plain value: the
// provider keeps no reference to it, and its holder is responsible for one
// Deregister.
type Region struct {
	Range      mem.Range // page-aligned, as pinned
	Access     Access
	LKey, RKey uint32 // keys of an RDMA device; the buffer index for io_uring
	Handle     uint64 // private to the provider
}

// Includes reports whether the registration covers all of r with access a.
func (g Region) Includes(r mem.Range, a Access) bool {
	return g.Range.Contains(r) && g.Access.Includes(a)
}

// Limits are a provider's bounds as the kernel and the device report them
// when it is opened; mem.Unlimited where there is none.
type Limits struct {
	MaxRegions     int64  // registrations at one time
	MaxRegionBytes int64  // bytes in one registration
	MaxPinnedBytes int64  // bytes pinned by this process
	PinnedSource   string // what sets MaxPinnedBytes, for people: "RLIMIT_MEMLOCK", "physical memory"
}

// Provider registers memory. Its errors match, by errors.Is, one of the
// sentinels of this package. All methods are safe for concurrent use;
// registrations of different ranges do not wait for each other longer than
// the kernel makes them.
type Provider interface {
	// Name is the provider's name in settings and reports: "uring".
	Name() string
	// Register pins the pages of r. Cost: O(pages), with system calls; it
	// faults in pages that were never touched.
	Register(r mem.Range, a Access) (Region, error)
	// Deregister releases what Register returned, exactly once. After an error
	// other than ErrUnknownRegion and ErrClosed the region may be pinned or
	// not, must not be used, and is still to be deregistered.
	Deregister(Region) error
	// Limits never fails and does no system call.
	Limits() Limits
	// Close releases the device and every region that is still registered.
	// It waits for calls under way; later ones fail with ErrClosed, a second
	// Close does nothing.
	Close() error
}

// Usage is what a provider holds at one moment, counted as the kernel counts
// it for the limit in Limits: a page in two registrations counts twice where
// each of them pins it (uring, rdma), once where the page is locked or not (mlock).
type Usage struct {
	Regions     int64
	PinnedBytes int64
}

// Accountant is a Provider that knows its usage. All providers of this module do.
type Accountant interface {
	// Usage costs no system call. While other goroutines register, it is a
	// moment in the past.
	Usage() Usage
}

// Pinnable is WholePages of what is to be pinned: it fails with ErrPinnedMemory
// if r is longer than this machine's memory, which the kernel would go on
// filling until it kills somebody.
func Pinnable(op string, r mem.Range) (mem.Range, error) {
	r, err := WholePages(op, r)
	if err == nil && r.Len() > uint64(PhysicalBytes()) {
		err = &Error{Op: op, Range: r, Kind: ErrPinnedMemory, Errno: syscall.ENOMEM}
	}
	return r, err
}

// WholePages returns the whole pages of r, as Register registers them. It
// fails, in the name of the call op, with ErrNotMapped for a range that is empty
// or that has no page-aligned end in the address space.
func WholePages(op string, r mem.Range) (mem.Range, error) {
	checked, err := mem.NewRange(r.Start, r.Len())
	if r.Empty() || errors.Is(err, mem.ErrEmpty) {
		return mem.Range{}, &Error{Op: op, Range: r, Kind: ErrNotMapped, Errno: syscall.EINVAL}
	}
	if err != nil {
		return mem.Range{}, &Error{Op: op, Range: r, Kind: ErrNotMapped, Errno: syscall.EOVERFLOW}
	}
	return checked.PageAligned(), nil
}
