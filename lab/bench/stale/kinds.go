package main

// #include "changes.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// <linux/io_uring.h>
const (
	opFallocate = 17
	opMadvise   = 25
	opFtruncate = 55 // Linux 6.9
)

// kinds are all changes of the matrix, in the order of its rows.
func kinds() []change.Kind {
	return append(append([]change.Kind(nil), change.Kinds...), []change.Kind{
		{Name: "munmap past libc", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.raw_munmap(p, n) })},
		{Name: "mmap(MAP_FIXED) over past libc", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.raw_mapfixed(p, n) })},
		{Name: "mremap away past libc", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.raw_mremap_away(p, n) })},
		{Name: "MADV_DONTNEED past libc", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.raw_dontneed(p, n) })},
		{Name: "munmap through int 0x80", Make: memory(func(n C.size_t) unsafe.Pointer { return C.low_memory(n) }),
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.compat_munmap(p, n) })},
		{Name: "munmap by a vfork child", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.vfork_munmap(p, n) })},
		{Name: "brk shrink", Make: memory(func(n C.size_t) unsafe.Pointer { return C.break_memory(n) }),
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.break_shrink(p, n) })},
		{Name: "free of a large block", Make: memory(func(n C.size_t) unsafe.Pointer { return C.large_block(n) }),
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.large_block_free(p, n) })},
		{Name: "malloc_trim", Make: memory(func(n C.size_t) unsafe.Pointer { return C.heap_block(n) }),
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.heap_trim(p, n) })},
		{Name: "thread exit frees its stack", Make: memory(func(n C.size_t) unsafe.Pointer { return C.thread_stack(n) }),
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.thread_exit(p, n) })},
		{Name: "Go heap scavenging", Make: goHeap, Do: scavenge},
		{Name: "fork, parent writes", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.fork_parent_writes(p, n) }), Keeps: true},
		{Name: "fork, child writes", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.fork_child_writes(p, n) }), Keeps: true},
		{Name: "ftruncate by another process", Make: change.SharedFile, Do: byOther(C.OTHER_TRUNCATE)},
		{Name: "hole punch by another process", Make: change.SharedFile, Do: byOther(C.OTHER_PUNCH)},
		{Name: "MADV_REMOVE by another process", Make: sharedAnonymous, Do: byOther(C.OTHER_REMOVE)},
		{Name: "open(O_TRUNC)", Make: change.SharedFile, Do: openTruncate},
		{Name: "io_uring MADVISE", Make: change.Anonymous, Do: func(s *change.Subject) error {
			return errnoOf(C.uring_op(opMadvise, -1, 0, start(s), C.uint(s.Range.Len()), unix.MADV_DONTNEED))
		}},
		{Name: "io_uring FALLOCATE hole punch", Make: change.SharedFile, Do: func(s *change.Subject) error {
			// The length travels in addr, the mode in len.
			n := uintptr(s.Range.Len())
			return errnoOf(C.uring_op(opFallocate, C.int(s.FD()), 0, *(*unsafe.Pointer)(unsafe.Pointer(&n)),
				unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0))
		}},
		{Name: "io_uring FTRUNCATE", Make: change.SharedFile, Do: func(s *change.Subject) error {
			if err := errnoOf(C.uring_op(opFtruncate, C.int(s.FD()), 0, nil, 0, 0)); err != nil {
				return err
			}
			return unix.Ftruncate(s.FD(), int64(s.Range.Len()))
		}},
		{Name: "UFFDIO_MOVE", Make: change.Anonymous,
			Do: inC(func(p unsafe.Pointer, n C.size_t) C.int { return C.uffd_move(p, n) }), Keeps: true},
	}...)
}

// pages is the size of what is registered and changed.
const pages = 16

// throughLibc makes the system calls of package change as a C program would.
func throughLibc(nr, a, b, c, d, e, f uintptr) (r1, r2 uintptr, errno unix.Errno) {
	r, err := C.libc_call(C.long(nr), C.long(a), C.long(b), C.long(c), C.long(d), C.long(e), C.long(f))
	if r == -1 {
		return 0, 0, err.(unix.Errno)
	}
	return uintptr(r), 0, 0
}

func start(s *change.Subject) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s.Bytes())) }

func errnoOf(r C.int) error {
	if r < 0 {
		return unix.Errno(-r)
	}
	return nil
}

func inC(f func(unsafe.Pointer, C.size_t) C.int) func(*change.Subject) error {
	return func(s *change.Subject) error { return errnoOf(f(start(s), C.size_t(s.Range.Len()))) }
}

func byOther(what C.enum_other) func(*change.Subject) error {
	return func(s *change.Subject) error {
		return errnoOf(C.other_process(what, start(s), C.size_t(s.Range.Len()), C.int(s.FD())))
	}
}

// memory makes a Subject of what C allocates. It ends with the process: each
// cell of the matrix has one of its own.
func memory(allocate func(C.size_t) unsafe.Pointer) func(uint64) (*change.Subject, error) {
	return func(pages uint64) (*change.Subject, error) {
		n := pages * mem.PageSize
		p := allocate(C.size_t(n))
		if p == nil {
			return nil, fmt.Errorf("no such memory here")
		}
		s := change.Adopt(mem.Range{Start: mem.Addr(uintptr(p)), End: mem.Addr(uintptr(p)) + mem.Addr(n)}, func() {})
		s.Fill('A')
		return s, nil
	}
}

func sharedAnonymous(pages uint64) (*change.Subject, error) {
	return memory(func(n C.size_t) unsafe.Pointer {
		p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
		if err != nil {
			return nil
		}
		return p
	})(pages)
}

func openTruncate(s *change.Subject) error {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", s.FD()), os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(int64(s.Range.Len()))
}

// heapBytes is the size of the Go object whose first pages are watched: large
// enough to be given back to the kernel as a whole.
const heapBytes = 8 << 20

var heapObject []byte // reachable until scavenge

func goHeap(pages uint64) (*change.Subject, error) {
	debug.SetGCPercent(-1)
	heapObject = make([]byte, heapBytes)
	p := mem.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(heapObject))))
	s := change.Adopt(mem.Range{Start: p, End: p + mem.Addr(pages*mem.PageSize)}, func() {})
	s.Fill('A')
	return s, nil
}

// scavenge drops the object, has its memory given back to the kernel, and
// allocates until an object covers the same addresses.
func scavenge(s *change.Subject) error {
	heapObject = nil
	debug.FreeOSMemory()
	var others [][]byte
	defer func() { runtime.KeepAlive(others) }()
	for range 200 {
		heapObject = make([]byte, heapBytes)
		p := mem.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(heapObject))))
		if (mem.Range{Start: p, End: p + heapBytes}).Contains(s.Range) {
			return nil
		}
		others = append(others, heapObject)
	}
	return fmt.Errorf("the address was not handed out again")
}
