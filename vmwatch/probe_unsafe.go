package vmwatch

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loadAttr is the part of union bpf_attr for BPF_PROG_LOAD that Linux 5.5 has, <linux/bpf.h>.
type loadAttr struct {
	progType, instructions uint32
	code, license          uint64
	_                      [11]uint32
	attachType             uint32
	_                      [9]uint32
	attachTo               uint32
	_                      uint32
}

// The kernel's offset of attach_btf_id; a mismatch doesn't compile.
const _ = uint(unsafe.Offsetof(loadAttr{}.attachTo)-108) + uint(108-unsafe.Offsetof(loadAttr{}.attachTo))

// probeFentry fails with EPERM where this process may not load programs for functions of the kernel,
// which some kernels forbid to everyone. The attempt to load the real ones would take 20 ms to find out.
func probeFentry() error {
	const tracing, fentry = 26, 24         // BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY
	code := [...]uint64{0xb7, 0x95}        // r0 = 0; exit
	license := [...]byte{'G', 'P', 'L', 0} // as the real ones
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&code)
	pinner.Pin(&license)
	// Type 1 of the kernel is an integer: where it may load programs, the call fails with EINVAL.
	attr := loadAttr{progType: tracing, instructions: uint32(len(code)), attachType: fentry, attachTo: 1,
		code: uint64(uintptr(unsafe.Pointer(&code))), license: uint64(uintptr(unsafe.Pointer(&license)))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 {
		unix.Close(int(fd))
	}
	if errno == unix.EPERM {
		return errno
	}
	return nil
}
