package vmwatch

import (
	_ "embed"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// bpfObject is bpf/watch.bpf.c compiled for x86-64; go generate makes it.
//
//go:embed bpf/watch_x86.o
var bpfObject []byte

// innerStructs are those of coreStructs that only this processor has.
var innerStructs = []string{"thread_info"}

// compatLimit is the end of what system calls made through int 0x80 can
// reach: the per-call tracepoints don't see those.
const compatLimit mem.Addr = 4 << 30

// x32Bit marks a system call of the x32 ABI (__X32_SYSCALL_BIT, <asm/unistd.h>).
const x32Bit = 0x40000000

// x32Enabled reports whether the kernel runs x32 system calls; few do.
func x32Enabled() bool {
	_, _, errno := unix.RawSyscall(x32Bit|unix.SYS_GETPID, 0, 0, 0)
	return errno != unix.ENOSYS
}
