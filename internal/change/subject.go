package change

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// Subject is memory to be changed, wholly present and filled with ones.
//
// Between unmapping and mapping again any other thread of the program may be
// given the address. The Do of such a change then fails, and what was lost is
// neither touched nor unmapped any more.
type Subject struct {
	Range mem.Range
	fd    int     // of the file behind it, or -1
	owned mem.Set // to be unmapped
	free  func()  // instead of unmapping, for adopted memory
}

// Anonymous maps private memory.
func Anonymous(pages uint64) (*Subject, error) {
	return mapSubject(pages, unix.MAP_PRIVATE|unix.MAP_ANON, -1)
}

// SharedFile maps a memory file, shared.
func SharedFile(pages uint64) (*Subject, error) { return fileSubject(pages, unix.MAP_SHARED) }

// privateFile maps a memory file, private: writing copies its pages.
func privateFile(pages uint64) (*Subject, error) { return fileSubject(pages, unix.MAP_PRIVATE) }

func fileSubject(pages uint64, flags int) (*Subject, error) {
	fd, err := unix.MemfdCreate("pinwheel-change", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(pages*mem.PageSize)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	s, err := mapSubject(pages, flags, fd)
	if err != nil {
		unix.Close(fd)
	}
	return s, err
}

func mapSubject(pages uint64, flags, fd int) (*Subject, error) {
	p, err := mmap(0, pages*mem.PageSize, flags, fd)
	if err != nil {
		return nil, err
	}
	return newSubject(p, pages, fd), nil
}

// newSubject makes a Subject of what was mapped at p.
func newSubject(p mem.Addr, pages uint64, fd int) *Subject {
	r := mem.Range{Start: p, End: p + mem.Addr(pages*mem.PageSize)}
	s := &Subject{Range: r, fd: fd, owned: mem.NewSet(r)}
	s.Fill(1)
	return s
}

// segment attaches a SysV segment.
func segment(pages uint64) (*Subject, error) {
	p, err := attachSegment(pages*mem.PageSize, 0, 0)
	if err != nil {
		return nil, err
	}
	return newSubject(p, pages, -1), nil
}

// attachSegment attaches a new segment that ends with its last attachment:
// a killed process leaves none behind.
func attachSegment(n uint64, addr mem.Addr, flags int) (mem.Addr, error) {
	id, err := shmget(n)
	if err != nil {
		return 0, err
	}
	p, err := shmat(id, addr, flags)
	return p, errors.Join(err, shmRemove(id))
}

// Adopt makes a Subject of memory that the caller has mapped and filled, and
// that free removes.
func Adopt(r mem.Range, free func()) *Subject { return &Subject{Range: r, fd: -1, free: free} }

// FD returns the descriptor of the file behind the Subject, or -1.
func (s *Subject) FD() int { return s.fd }

// Free removes everything that the Subject and its change made. It may be
// called again.
func (s *Subject) Free() {
	if s.free != nil {
		s.free()
		s.free = nil
	}
	for r := range s.owned.All() {
		_ = munmap(r) // ours, so it can't fail
	}
	s.owned = mem.Set{}
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

func (s *Subject) page(n int) mem.Range {
	start := s.Range.Start + mem.Addr(uint64(n)*mem.PageSize)
	return mem.Range{Start: start, End: start + mem.Addr(mem.PageSize)}
}

// Unmap takes r, a part of the Subject, away. The address may be somebody
// else's from then on.
func (s *Subject) Unmap(r mem.Range) error {
	s.owned.Remove(r)
	return munmap(r)
}

// replace unmaps r and maps other memory there, in two calls.
func (s *Subject) replace(r mem.Range) error {
	if err := s.Unmap(r); err != nil {
		return err
	}
	return s.refill(r)
}

// refill maps memory at r, part of the Subject that was just unmapped.
func (s *Subject) refill(r mem.Range) error {
	s.owned.Remove(r)
	if err := mapFree(r); err != nil {
		return err
	}
	s.owned.Add(r)
	return nil
}

// shrink cuts the second half off and maps other memory there.
func (s *Subject) shrink() error {
	half := s.Range.Len() / 2
	if _, err := mremap(s.Range, half, 0, 0); err != nil {
		return err
	}
	return s.refill(mem.Range{Start: s.Range.Start + mem.Addr(half), End: s.Range.End})
}

// truncate takes the file's pages away and makes it as long again.
func (s *Subject) truncate() error {
	if err := unix.Ftruncate(s.fd, 0); err != nil {
		return err
	}
	return unix.Ftruncate(s.fd, int64(s.Range.Len()))
}

// detach takes the segment away and maps other memory there.
func (s *Subject) detach() error {
	if err := shmdt(s.Range); err != nil {
		return err
	}
	return s.refill(s.Range)
}

// move moves the pages elsewhere, as mremap with flags does, and maps other memory in their place.
func (s *Subject) move(size uint64, flags int) error {
	target := mem.Addr(0)
	if flags&unix.MREMAP_FIXED != 0 || size > s.Range.Len() {
		p, err := mmap(0, size, unix.MAP_PRIVATE|unix.MAP_ANON, -1)
		if err != nil {
			return err
		}
		target, flags = p, flags|unix.MREMAP_FIXED
	}
	p, err := mremap(s.Range, size, flags, target)
	if err != nil {
		return err
	}
	s.owned.Add(mem.Range{Start: p, End: p + mem.Addr(size)})
	if flags&unix.MREMAP_DONTUNMAP != 0 {
		return nil // still mapped, without its pages
	}
	return s.refill(s.Range)
}

func mremapOnto(s *Subject) error {
	o, err := Anonymous(s.Range.Pages())
	if err != nil {
		return err
	}
	p, err := mremap(o.Range, o.Range.Len(), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, s.Range.Start)
	if err == nil && p != s.Range.Start {
		return fmt.Errorf("mremap(MREMAP_FIXED) to %#x moved to %#x", s.Range.Start, p)
	}
	return err
}

func shmRemap(s *Subject) error {
	_, err := attachSegment(s.Range.Len(), s.Range.Start, shmRemapFlag)
	return err
}

func advise(advice int) func(*Subject) error {
	return func(s *Subject) error { return madvise(s.Range, advice) }
}

// permit accepts that the kernel declines, as it does for pinned memory.
func permit(err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.ENOMEM) {
		return nil
	}
	return err
}
