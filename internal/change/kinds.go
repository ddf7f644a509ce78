package change

import "golang.org/x/sys/unix"

// Kind is one way in which a mapping changes. After Do the Subject's range is
// mapped and writable again, as a program would find it.
type Kind struct {
	Name string
	// Make makes a Subject of the kind of memory that it changes, of 4 pages or more.
	Make func(pages uint64) (*Subject, error)
	Do   func(*Subject) error
	// Keeps says that the pages must stay what they were: a hit is right.
	Keeps bool
}

// Kinds are those that a process may perform on itself without disturbing
// the rest of the program.
var Kinds = []Kind{
	{Name: "munmap", Make: Anonymous, Do: func(s *Subject) error { return s.replace(s.Range) }},
	{Name: "munmap of one page", Make: Anonymous, Do: func(s *Subject) error { return s.replace(s.page(1)) }},
	{Name: "mmap(MAP_FIXED) over", Make: Anonymous, Do: func(s *Subject) error { return mapOver(s.Range) }},
	{Name: "mremap shrink", Make: Anonymous, Do: (*Subject).shrink},
	{Name: "mremap grow (moves)", Make: Anonymous,
		Do: func(s *Subject) error { return s.move(2*s.Range.Len(), unix.MREMAP_MAYMOVE) }},
	{Name: "mremap away", Make: Anonymous, Do: func(s *Subject) error {
		return s.move(s.Range.Len(), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	}},
	{Name: "mremap onto", Make: Anonymous, Do: mremapOnto},
	{Name: "mremap DONTUNMAP", Make: Anonymous, Do: func(s *Subject) error {
		return s.move(s.Range.Len(), unix.MREMAP_MAYMOVE|unix.MREMAP_DONTUNMAP)
	}},
	{Name: "MADV_DONTNEED", Make: Anonymous, Do: advise(unix.MADV_DONTNEED)},
	{Name: "MADV_DONTNEED of one page", Make: Anonymous,
		Do: func(s *Subject) error { return madvise(s.page(2), unix.MADV_DONTNEED) }},
	{Name: "MADV_DONTNEED_LOCKED", Make: Anonymous, Do: advise(unix.MADV_DONTNEED_LOCKED)},
	{Name: "MADV_FREE", Make: Anonymous, Do: advise(unix.MADV_FREE), Keeps: true},
	{Name: "MADV_GUARD_INSTALL", Make: Anonymous, Do: func(s *Subject) error {
		if err := madvise(s.Range, GuardInstall); err != nil {
			return err
		}
		return madvise(s.Range, madvGuardRemove)
	}},
	{Name: "MADV_COLLAPSE", Make: Anonymous,
		Do: func(s *Subject) error { return permit(madvise(s.Range, unix.MADV_COLLAPSE)) }, Keeps: true},
	{Name: "MADV_PAGEOUT", Make: Anonymous, Do: advise(unix.MADV_PAGEOUT), Keeps: true},
	{Name: "process_madvise(DONTNEED)", Make: Anonymous, Do: processMadvise},
	{Name: "mprotect", Make: Anonymous, Do: func(s *Subject) error {
		if err := mprotect(s.Range, unix.PROT_NONE); err != nil {
			return err
		}
		return mprotect(s.Range, unix.PROT_READ|unix.PROT_WRITE)
	}, Keeps: true},
	{Name: "shmat(SHM_REMAP) over", Make: Anonymous, Do: shmRemap},
	{Name: "MADV_REMOVE of a memfd", Make: SharedFile, Do: advise(unix.MADV_REMOVE)},
	{Name: "hole punch in a memfd", Make: SharedFile, Do: func(s *Subject) error {
		return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(s.Range.Len()))
	}},
	{Name: "ftruncate of a memfd", Make: SharedFile, Do: (*Subject).truncate},
	{Name: "munmap of a memfd", Make: SharedFile, Do: func(s *Subject) error { return s.replace(s.Range) }},
	{Name: "ftruncate of a private file mapping", Make: privateFile, Do: (*Subject).truncate},
	{Name: "shmdt", Make: segment, Do: (*Subject).detach},
}
