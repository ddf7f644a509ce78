package vmwatch

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// errNoQuery says that the kernel has no PROCMAP_QUERY.
var errNoQuery = errors.New("no PROCMAP_QUERY")

// procmapQuery is struct procmap_query, <linux/fs.h>, Linux 6.11.
type procmapQuery struct {
	size, flags, addr                      uint64
	start, end, vmaFlags, pageSize, offset uint64
	inode                                  uint64
	devMajor, devMinor, nameLen, buildLen  uint32
	name, build                            uint64
}

const (
	procmapQueryIoctl = 0xc0686611 // _IOWR('f', 17, struct procmap_query)
	procmapVMAShared  = 0x08       // PROCMAP_QUERY_VMA_SHARED
	procmapOrNext     = 0x10       // PROCMAP_QUERY_COVERING_OR_NEXT_VMA
)

// queryVMA returns the mapping that holds addr, or else the next one; it fails with ENOENT after the last.
func queryVMA(maps *os.File, addr mem.Addr) (m machine.Mapping, err error) {
	q := procmapQuery{addr: uint64(addr), flags: procmapOrNext}
	q.size = uint64(unsafe.Sizeof(q))
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, maps.Fd(), procmapQueryIoctl, uintptr(unsafe.Pointer(&q)))
	switch errno {
	case 0:
		m.Range = mem.Range{Start: mem.Addr(q.start), End: mem.Addr(q.end)}
		m.Shared, m.Inode = q.vmaFlags&procmapVMAShared != 0, q.inode
		return m, nil
	case unix.ENOTTY, unix.EINVAL, unix.EPERM:
		return m, errNoQuery
	}
	return m, fmt.Errorf("PROCMAP_QUERY from %#x: %w", uintptr(addr), errno)
}

// mapPrivate maps zeroed memory for a T outside the Go heap, present from the start.
func mapPrivate[T any]() (*T, error) {
	var zero T
	n := (unsafe.Sizeof(zero) + uintptr(mem.PageSize) - 1) &^ (uintptr(mem.PageSize) - 1)
	p, err := unix.MmapPtr(-1, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	return (*T)(p), nil
}

// mmapAt is mmap(2) by number, as Go's own runtime does it.
func mmapAt(addr mem.Addr, n uint64, flags, fd int) (mem.Addr, error) {
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(addr), uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		uintptr(flags), uintptr(fd), 0)
	if errno != 0 {
		return 0, fmt.Errorf("mmap of %d bytes: %w", n, errno)
	}
	return mem.Addr(p), nil
}

// scratch maps n bytes of private memory, and unmaps them again with free.
func scratch(n uint64) (r mem.Range, free func(), err error) {
	p, err := mmapAt(0, n, unix.MAP_PRIVATE|unix.MAP_ANON, -1)
	if err != nil {
		return mem.Range{}, nil, err
	}
	r = mem.Range{Start: p, End: p + mem.Addr(n)}
	return r, func() { unix.Syscall(unix.SYS_MUNMAP, uintptr(p), uintptr(n), 0) }, nil
}

// store writes one byte, to bring a page in.
func store(addr mem.Addr, b byte) { *(*byte)(pointer(addr)) = b }

// pointer makes an address of memory outside the Go heap usable. Going
// through the address of addr tells vet that this is meant.
func pointer(addr mem.Addr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// still is the generation word of the mechanisms that have none: always 0,
// shared by all Watchers and never unmapped.
var still = sync.OnceValue(func() *uint64 {
	word, err := mapPrivate[uint64]()
	if err != nil {
		return new(uint64) // no memory for a page; C can't be given this one
	}
	return word
})
