package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"pinwheel/mem"
)

// Errors of a registration. Each says what to do. Compare with errors.Is.
var (
	// ErrPinnedMemory means that no more memory may be pinned: evict idle registrations and retry, or raise the limit.
	ErrPinnedMemory = errors.New("out of pinned memory (raise RLIMIT_MEMLOCK with ulimit -l, or lower the budget)")
	// ErrRegions means that the device has no room for another region: evict idle registrations and retry.
	ErrRegions = errors.New("out of memory regions (the device or table is full: release idle registrations)")
	// ErrNotMapped means that some of the range is not mapped with the requested access.
	ErrNotMapped = errors.New("memory not mapped for this access (check address, length and protection)")
	// ErrNotPermitted means that a capability, seccomp filter or sysctl forbids registration.
	ErrNotPermitted = errors.New("registration not permitted (check capabilities, seccomp and kernel.io_uring_disabled)")
	// ErrUnsupported means that this kernel or device lacks the call.
	ErrUnsupported = errors.New("not supported by this kernel or device (choose another provider with PINWHEEL_PROVIDER)")
	// ErrBusy means a passing shortage (EAGAIN, EINTR): make the same call again.
	ErrBusy = errors.New("resource temporarily unavailable (retry)")
	// ErrRegionSize means that the range exceeds Limits.MaxRegionBytes: split it.
	ErrRegionSize = errors.New("range longer than one registration may be (split it)")
	// ErrSystem stands for an errno that no provider expects: report it.
	ErrSystem = errors.New("unexpected failure of the kernel or driver (please report it)")
)

// Mistakes of the caller. Nothing was changed.
var (
	// ErrUnknownRegion means that the region is not registered. A provider may
	// fail to recognise a region of another one.
	ErrUnknownRegion = errors.New("region is not registered (deregistered twice?)")
	// ErrClosed means that the provider was closed.
	ErrClosed = errors.New("provider is closed")
)

// Kind returns the sentinel for an errno of a call that registers memory
// (io_uring_register(2), ibv_reg_mr(3)). A provider whose call uses an errno differently
// translates it by itself.
func Kind(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOMEM:
		return ErrPinnedMemory
	case syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE:
		return ErrRegions
	case syscall.EFAULT, syscall.EOVERFLOW:
		return ErrNotMapped
	case syscall.EPERM, syscall.EACCES:
		return ErrNotPermitted
	case syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ENODEV:
		return ErrUnsupported
	case syscall.EAGAIN, syscall.EINTR, syscall.EBUSY:
		return ErrBusy
	}
	return ErrSystem
}

// Fail returns the *Error of a call that failed with errno; Kind chooses its sentinel.
func Fail(op string, r mem.Range, errno syscall.Errno) error {
	return &Error{Op: op, Range: r, Kind: Kind(errno), Errno: errno}
}

// Error is a failed provider call. It unwraps to its kind, one of the
// sentinels above, and to the errno of the call.
type Error struct {
	Op    string    // the call that failed: "io_uring_register(BUFFERS_UPDATE)"
	Range mem.Range // the range asked for; empty where the call has none
	Kind  error
	Errno syscall.Errno
}

func (e *Error) Error() string {
	s := e.Op
	if !e.Range.Empty() {
		s += " of " + e.Range.String()
	}
	if e.Errno != 0 {
		return fmt.Sprintf("%s: %v: %v", s, e.Errno, e.Kind)
	}
	return fmt.Sprintf("%s: %v", s, e.Kind)
}

// Unwrap makes errors.Is match both the kind and the errno.
func (e *Error) Unwrap() []error {
	if e.Errno == 0 {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Errno}
}
