package mem

import (
	"errors"
	"fmt"
	"os"
)

// Addr is a virtual address of this process, or of a traced one. It is never
// dereferenced by this package.
type Addr uintptr

// Range is the half-open interval [Start, End) of virtual addresses. The
// zero value is empty.
type Range struct {
	Start, End Addr
}

// RegionID names a registered range for as long as its cache knows it: it
// stays the same when the range is deregistered and registered again, is
// never given to another range, and is never zero for a real region.
type RegionID uint64

var (
	// ErrEmpty is returned for a range of length zero, which no provider can register.
	ErrEmpty = errors.New("mem: empty range")
	// ErrOverflow is returned for a range whose end lies beyond the address space.
	ErrOverflow = errors.New("mem: range exceeds the address space")
	// ErrChanged is returned for a range whose mapping changed, or was about to, while it was registered: another try may
	// succeed.
	ErrChanged = errors.New("mem: range changed while it was registered")
)

// PageSize is the size in bytes of a small page of this machine; memory is
// pinned in units of it.
var PageSize = uint64(os.Getpagesize())

// NewRange returns the n bytes from start. It fails with ErrEmpty if n is 0
// and with ErrOverflow if the range, rounded up to whole pages, has no
// representable end.
func NewRange(start Addr, n uint64) (Range, error) {
	if n == 0 {
		return Range{}, fmt.Errorf("%w at %#x", ErrEmpty, uintptr(start))
	}
	end := start + Addr(n)
	if end < start || end > ^Addr(0)-Addr(PageSize-1) {
		return Range{}, fmt.Errorf("%w: %#x + %d bytes", ErrOverflow, uintptr(start), n)
	}
	return Range{start, end}, nil
}

// Len returns the length in bytes.
func (r Range) Len() uint64 { return uint64(r.End - r.Start) }

// Empty reports whether r holds no address.
func (r Range) Empty() bool { return r.End <= r.Start }

// Contains reports whether every address of o lies in r. An empty o is
// contained in nothing: a request of zero bytes has no registration.
func (r Range) Contains(o Range) bool {
	return !o.Empty() && r.Start <= o.Start && o.End <= r.End
}

// Overlaps reports whether r and o share an address.
func (r Range) Overlaps(o Range) bool {
	return r.Start < o.End && o.Start < r.End && !r.Empty() && !o.Empty()
}

// Union returns the smallest range that covers both, with any gap between
// them. The union with an empty range is the other one.
func (r Range) Union(o Range) Range {
	if r.Empty() {
		return o
	}
	if o.Empty() {
		return r
	}
	return Range{min(r.Start, o.Start), max(r.End, o.End)}
}

// PageAligned returns r grown to whole pages: what the kernel pins for it.
// The end of a range made by NewRange never overflows.
func (r Range) PageAligned() Range {
	mask := Addr(PageSize - 1)
	return Range{r.Start &^ mask, (r.End + mask) &^ mask}
}

// Pages returns the number of pages that r touches.
func (r Range) Pages() uint64 {
	if r.Empty() {
		return 0
	}
	return r.PageAligned().Len() / PageSize
}

// String formats r as "0x1000-0x3000 (8.0 KiB)".
func (r Range) String() string {
	return fmt.Sprintf("%#x-%#x (%s)", uintptr(r.Start), uintptr(r.End), FormatBytes(r.Len()))
}
