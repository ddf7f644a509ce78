package change

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// <asm-generic/mman-common.h>, Linux 6.13.
const (
	GuardInstall    = 102 // MADV_GUARD_INSTALL
	madvGuardRemove = 103
)

// shmRemapFlag is SHM_REMAP, <sys/shm.h>: replace what is mapped there.
const shmRemapFlag = 0o40000

// Syscall makes the system calls of all changes: by number, as Go's own
// runtime does. The matrix replaces it, before the first change, to go through
// libc, where other libraries listen.
var Syscall = unix.Syscall6

func call(what string, nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	p, _, errno := Syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, fmt.Errorf("%s: %w", what, errno)
	}
	return p, nil
}

func mmap(addr mem.Addr, n uint64, flags, fd int) (mem.Addr, error) {
	p, err := call("mmap", unix.SYS_MMAP, uintptr(addr), uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		uintptr(flags), uintptr(fd), 0)
	return mem.Addr(p), err
}

// mapOver replaces what is mapped at r.
func mapOver(r mem.Range) error {
	_, err := mmap(r.Start, r.Len(), unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED, -1)
	return err
}

// mapFree maps r where nothing is mapped; it fails if another thread was faster.
func mapFree(r mem.Range) error {
	_, err := mmap(r.Start, r.Len(), unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, -1)
	return err
}

func munmap(r mem.Range) error {
	_, err := call("munmap", unix.SYS_MUNMAP, uintptr(r.Start), uintptr(r.Len()))
	return err
}

func mremap(r mem.Range, size uint64, flags int, to mem.Addr) (mem.Addr, error) {
	p, err := call("mremap", unix.SYS_MREMAP, uintptr(r.Start), uintptr(r.Len()),
		uintptr(size), uintptr(flags), uintptr(to))
	return mem.Addr(p), err
}

func madvise(r mem.Range, advice int) error {
	_, err := call(fmt.Sprintf("madvise(%d)", advice), unix.SYS_MADVISE, uintptr(r.Start),
		uintptr(r.Len()), uintptr(advice))
	return err
}

func mprotect(r mem.Range, prot int) error {
	_, err := call("mprotect", unix.SYS_MPROTECT, uintptr(r.Start), uintptr(r.Len()), uintptr(prot))
	return err
}

func processMadvise(s *Subject) error {
	pidfd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(pidfd)
	iov := unix.Iovec{Base: &s.Bytes()[0], Len: s.Range.Len()}
	_, err = call("process_madvise(DONTNEED)", unix.SYS_PROCESS_MADVISE, uintptr(pidfd),
		uintptr(unsafe.Pointer(&iov)), 1, unix.MADV_DONTNEED, 0)
	return err
}

func shmget(n uint64) (int, error) {
	id, err := call("shmget", unix.SYS_SHMGET, unix.IPC_PRIVATE, uintptr(n), unix.IPC_CREAT|0o600)
	return int(id), err
}

func shmat(id int, addr mem.Addr, flags int) (mem.Addr, error) {
	p, err := call("shmat", unix.SYS_SHMAT, uintptr(id), uintptr(addr), uintptr(flags))
	return mem.Addr(p), err
}

func shmdt(r mem.Range) error {
	_, err := call("shmdt", unix.SYS_SHMDT, uintptr(r.Start))
	return err
}

func shmRemove(id int) error {
	_, err := call("shmctl(IPC_RMID)", unix.SYS_SHMCTL, uintptr(id), unix.IPC_RMID, 0)
	return err
}

// Bytes views the Subject's memory, which is outside the Go heap.
func (s *Subject) Bytes() []byte { return s.Range.Bytes() }

// Fill stores b in every byte.
func (s *Subject) Fill(b byte) {
	m := s.Bytes()
	for i := range m {
		m[i] = b
	}
}
