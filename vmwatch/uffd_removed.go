//go:build amd64 || arm64

package vmwatch

import (
	"sync"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// removedRanges are those that have lost pages by MADV_DONTNEED and its like since the userfaultfd was opened. Their
// events come before the pages go, and nothing tells when that is over. Safe for concurrent use.
type removedRanges struct {
	mu  sync.RWMutex
	in  mem.Set
	n   int  // ranges in it, at most
	all bool // too many to know them
}

// mostRemoved bounds the ranges that are told apart. Allocators give back the same places again and again.
const mostRemoved = 4096

func (s *removedRanges) add(r mem.Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all {
		return
	}
	s.in.Add(r)
	if s.n++; s.n > mostRemoved {
		s.n = 0
		for range s.in.All() {
			s.n++
		}
		if s.n > mostRemoved/2 {
			s.in, s.all = mem.Set{}, true
		}
	}
}

// addAll adds every range there is, for those that are not known.
func (s *removedRanges) addAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in, s.all = mem.Set{}, true
}

// remove takes back what was added of r: it is over.
func (s *removedRanges) remove(r mem.Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Remove(r)
}

func (s *removedRanges) overlap(r mem.Range) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all || !s.in.Within(r).Empty()
}

// hasGuards reports whether the kernel has MADV_GUARD_INSTALL, or might have: those before Linux 6.13 refuse it.
func hasGuards() bool {
	page, err := unix.Mmap(-1, 0, int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Munmap(page) }()
	return unix.Madvise(page, change.GuardInstall) != unix.EINVAL
}
