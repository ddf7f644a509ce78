package prefault

import (
	"fmt"
	"math/bits"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// populates reports whether the kernel has MADV_POPULATE_READ and MADV_POPULATE_WRITE. An emulator of the kernel may take
// them for mere advice, and do nothing: so a page shows it.
var populates = sync.OnceValue(func() bool {
	page, err := unix.Mmap(-1, 0, int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Munmap(page) }()
	var resident [1]byte
	at := mem.RangeOf(page)
	if madvise(at, unix.MADV_POPULATE_WRITE) != 0 {
		return false
	}
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(at.Start), uintptr(at.Len()), uintptr(unsafe.Pointer(&resident)))
	return errno == 0 && resident[0]&1 != 0
})

// touch provides the pages of p.
func touch(p part) error {
	by := populate
	if !populates() {
		by = touchPages
	}
	for {
		errno := by(p)
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return explain(p, errno)
	}
}

// explain returns the error of what failed with errno, if it is one.
func explain(p part, errno syscall.Errno) error {
	all, err := machine.Mappings()
	if err == nil {
		_, err = plan(p.Range, p.write, all)
	}
	switch {
	case err != nil:
		return err // it was unmapped meanwhile
	case errno == unix.EINVAL:
		return nil // of a device, whose memory has its pages
	case errno == unix.ENOMEM:
		return fmt.Errorf("prefault of %v: %w (no memory is left here, or in the control group)", p.Range, errno)
	case errno == unix.EFAULT:
		return &verbs.Error{Op: "prefault beyond the end of a file, or without a free huge page,",
			Range: p.Range, Kind: verbs.ErrNotMapped, Errno: errno}
	}
	return verbs.Fail("prefault", p.Range, errno)
}

func populate(p part) syscall.Errno {
	if p.write {
		return madvise(p.Range, unix.MADV_POPULATE_WRITE)
	}
	return madvise(p.Range, unix.MADV_POPULATE_READ)
}

func madvise(r mem.Range, advice int) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(r.Start), uintptr(r.Len()), uintptr(advice))
	return errno
}

// From <linux/futex.h>.
const (
	futexWait    = 0 | 128       // FUTEX_WAIT_PRIVATE
	futexWakeOp  = 5 | 128       // FUTEX_WAKE_OP_PRIVATE
	addNothing   = 1<<28 | 0x5a5 // FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0x5a5)
	unlikelyWord = 0x5a5a5a5a
)

// idleWord is a futex on which nobody waits.
var idleWord uint32

// touchPages touches each page of p by a system call on its first word, which has the kernel make the access. So memory
// that is gone is an error and no signal, also where a program has handlers of its own. A page is written by adding nothing
// to that word, atomically, whatever other threads do to it. Should one of them wait there as on a futex, and the
// word be the unlikely one, it wakes up and looks again, as it must expect at any time.
func touchPages(p part) syscall.Errno {
	for at := p.Start; at < p.End; at += mem.Addr(mem.PageSize) {
		var errno syscall.Errno
		if p.write {
			_, _, errno = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&idleWord)), futexWakeOp, 0, 0,
				uintptr(at), addNothing)
		} else {
			var now unix.Timespec // a time that is over
			_, _, errno = unix.Syscall6(unix.SYS_FUTEX, uintptr(at), futexWait, unlikelyWord, uintptr(unsafe.Pointer(&now)), 0, 0)
			if errno == unix.EAGAIN || errno == unix.ETIMEDOUT {
				errno = 0
			}
		}
		if errno != 0 {
			return errno
		}
	}
	return 0
}

// policyOf returns the NUMA nodes that the memory policy at an address names; none if pages lie where they are touched.
// See get_mempolicy(2).
func policyOf(at mem.Addr) (nodes []int) {
	const (
		ofAddress                                                   = 1 << 1 // MPOL_F_ADDR
		preferred, bindTo, interleave, preferredMany, weightedInter = 1, 2, 3, 5, 6
	)
	var mode int32
	var mask [1024 / 64]uint64 // as many as a kernel may know: CONFIG_NODES_SHIFT
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&mask)),
		uintptr(len(mask)*64), uintptr(at), ofAddress, 0)
	if errno != 0 {
		return nil
	}
	switch mode & 0xff { // without flags
	case preferred, bindTo, interleave, preferredMany, weightedInter:
		for i, word := range mask {
			for ; word != 0; word &= word - 1 {
				nodes = append(nodes, i*64+bits.TrailingZeros64(word))
			}
		}
	}
	return nodes
}
