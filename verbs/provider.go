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

// Includes reports whether a region registered with access a may serve a request for access b.
// It must have every right of b. Relaxed ordering and on-demand paging change the nature of a
// region, so they must be equal.
func (a Access) Includes(b Access) bool {
	const kind = AccessRelaxedOrdering | AccessOnDemand
	return a&b == b && a&kind == b&kind
}

// Region is one registration (memory region, MR). It is a plain value: the provider keeps no
// reference to it, and its holder must call Deregister once.
type Region struct {
	Range      mem.Range // the pinned pages
	Access     Access
	LKey, RKey uint32 // keys of an RDMA device; the buffer index for io_uring
	Handle     uint64 // private to the provider
}

// Limits are a provider's limits as the kernel and the device report them when it is opened.
// mem.Unlimited stands for no limit.
type Limits struct {
	MaxRegions     int64  // registrations at one time
	MaxRegionBytes int64  // bytes in one registration
	MaxPinnedBytes int64  // bytes pinned by this process
	PinnedSource   string // what sets MaxPinnedBytes, for people: "RLIMIT_MEMLOCK", "physical memory"
}

// Provider registers memory. Every error matches one of the sentinels of this package by
// errors.Is. All methods are safe for concurrent use. Registrations of different ranges wait
// for each other no longer than the kernel makes them.
type Provider interface {
	// Name is the provider's name in settings and reports: "uring".
	Name() string
	// Register pins the pages of r, and faults in those that were never touched. It
	// makes system calls, and takes time in the number of pages: see Cost.
	Register(r mem.Range, a Access) (Region, error)
	// Deregister releases a region that Register returned. It must succeed exactly
	// once. After an error other than ErrUnknownRegion and ErrClosed the region may or
	// may not be pinned; it must not be used, and still has to be deregistered.
	Deregister(Region) error
	// Limits never fails and makes no system call.
	Limits() Limits
	// Close releases the device and every region that is still registered. It waits
	// for calls that are under way; later calls fail with ErrClosed. A second Close
	// does nothing.
	Close() error
}

// Usage is the size of a provider's registrations, counted as the kernel counts them for the
// provider's Limits. A page in two registrations counts twice if each of them pins it (uring,
// rdma), and once if a page is either locked or not (mlock).
type Usage struct {
	Regions     int64
	PinnedBytes int64
}

// Accountant is a Provider that knows its usage. All providers of this module do.
type Accountant interface {
	// Usage makes no system call. While other goroutines register, the result may be
	// out of date.
	Usage() Usage
}

// Pinnable is WholePages for a provider that pins. It fails with ErrPinnedMemory if r is
// longer than this machine's memory, since the kernel would fault pages in until it kills a
// process, and with ErrUnsupported for AccessOnDemand, which pins nothing.
func Pinnable(op string, r mem.Range, a Access) (mem.Range, error) {
	r, err := WholePages(op, r)
	switch {
	case err != nil:
	case r.Len() > uint64(PhysicalBytes()):
		err = &Error{Op: op, Range: r, Kind: ErrPinnedMemory, Errno: syscall.ENOMEM}
	case a&AccessOnDemand != 0:
		err = &Error{Op: op, Range: r, Kind: ErrUnsupported}
	}
	return r, err
}

// WholePages returns the whole pages of r, as Register registers them. It fails with
// ErrNotMapped for a range that is empty or has no page-aligned end in the address space. op
// names the call in the error.
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
