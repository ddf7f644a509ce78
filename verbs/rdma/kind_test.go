//go:build linux && cgo

package rdma

import (
	"errors"
	"syscall"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
)

func TestErrnoIsReadInTheLightOfTheLimits(t *testing.T) {
	const mib = 1 << 20
	roomy := situation{limitBytes: 64 * mib, pinnedBytes: mib, askedBytes: mib, regions: 3, maxRegions: 100}
	pinnedOut, root, tableFull, forbidden := roomy, roomy, roomy, roomy
	pinnedOut.pinnedBytes = 63*mib + 1
	root.limitBytes, root.pinnedBytes = mem.Unlimited, 1<<40
	tableFull.regions = 100
	forbidden.limitBytes = 0

	for _, c := range []struct {
		errno syscall.Errno
		in    situation
		want  error
	}{
		{syscall.ENOMEM, pinnedOut, verbs.ErrPinnedMemory},
		{syscall.ENOMEM, roomy, verbs.ErrRegions},
		{syscall.ENOMEM, root, verbs.ErrRegions},
		{syscall.EAGAIN, roomy, verbs.ErrRegions},
		{syscall.EINVAL, tableFull, verbs.ErrRegions},
		{syscall.EINVAL, roomy, verbs.ErrUnsupported},
		{syscall.EPERM, forbidden, verbs.ErrPinnedMemory},
		{syscall.EPERM, roomy, verbs.ErrNotPermitted},
		{syscall.EFAULT, roomy, verbs.ErrNotMapped},
		{syscall.ENODEV, roomy, verbs.ErrUnsupported},
	} {
		if got := kindOf(c.errno, c.in); got != c.want {
			t.Errorf("%v in %+v is %q, want %q", c.errno, c.in, got, c.want)
		}
	}
}

func TestDeviceNamesMayNameAPort(t *testing.T) {
	for s, want := range map[string]struct {
		name string
		port uint8
	}{"": {"", 0}, "mlx5_0": {"mlx5_0", 0}, "mlx5_0:2": {"mlx5_0", 2}} {
		if name, port, err := parseDevice(s); name != want.name || port != want.port || err != nil {
			t.Errorf("%q is %q, %d, %v", s, name, port, err)
		}
	}
	for _, s := range []string{":1", "rxe0:", "rxe0:0", "rxe0:256", "rxe0:x"} {
		if _, _, err := parseDevice(s); !errors.Is(err, verbs.ErrUnsupported) {
			t.Errorf("%q gives %v", s, err)
		}
	}
}
