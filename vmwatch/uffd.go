//go:build amd64

package vmwatch

import (
	"errors"
	"os"
	"slices"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// uffdNotifier follows private anonymous memory with userfaultfd.
//
// Its events alone are too late: munmap tells after the address is free, and
// another thread may have it by then. So each hit also asks whether
//
//   - the range still belongs to mappings that were armed, as one mapped since
//     doesn't;
//   - every page is present, as pinned ones always are;
//   - the process has taken no page fault since the range was pinned, without
//     which no other page can have appeared in it.
//
// The last two cover what the first can't see: MADV_GUARD_INSTALL, and an armed
// mapping that mremap grows over a freed address.
//
// armed is guarded by source.mu; the rest doesn't change.
type uffdNotifier struct {
	fd      int
	pagemap *os.File
	reader  *uffdReader
	armed   []*uffdRange
}

// uffdRange is one armed range. Several may overlap or be equal.
type uffdRange struct {
	r mem.Range
	n *uffdNotifier
	// lost is set when part of r was found to be mapped anew and is about to
	// be armed again for another range: from then on the kernel's answer for r
	// would be about the wrong mapping.
	lost atomic.Bool
	// faults is pageFaults before the last pinning; negative while not registered.
	faults atomic.Int64
}

func openUffd() (notifier, error) {
	fd, err := uffd.Open(uffdFeatures)
	if err != nil {
		return nil, err
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	reader, err := startReader(fd)
	if err != nil {
		unix.Close(fd)
		pagemap.Close()
		return nil, err
	}
	return &uffdNotifier{fd: fd, pagemap: pagemap, reader: reader}, nil
}

func (n *uffdNotifier) word() *uint64 { return &n.reader.shared.generation }

// arm registers only what no other live range covers already: were the rest
// registered again, a mapping that replaced part of another range would look
// like the one that was armed for it.
func (n *uffdNotifier) arm(r mem.Range) (verifier, error) {
	free := mem.NewSet(r)
	for _, o := range n.armed {
		if !o.r.Overlaps(r) || o.lost.Load() {
			continue
		}
		if !pagesAre(n.pagemap.Fd(), o.r, uffd.WPAllowed) {
			o.lost.Store(true)
			continue
		}
		free.Remove(o.r)
	}
	for f := range free.All() {
		if err := uffd.Register(n.fd, f); err != nil {
			return nil, err
		}
	}
	u := &uffdRange{r: r, n: n}
	u.faults.Store(-1)
	n.armed = append(n.armed, u)
	return u, nil
}

func (n *uffdNotifier) disarm(_ mem.Range, v verifier) {
	u := v.(*uffdRange)
	n.armed = slices.DeleteFunc(n.armed, func(o *uffdRange) bool { return o == u })
	free := mem.NewSet(u.r)
	for _, o := range n.armed {
		free.Remove(o.r)
	}
	for f := range free.All() {
		uffd.Unregister(n.fd, f)
	}
}

func (n *uffdNotifier) first() uint64 { return n.reader.first() }

func (n *uffdNotifier) drain(seen uint64, report func(mem.Range)) (next uint64, overrun bool) {
	return n.reader.drain(seen, func(m uffdMsg) {
		switch m.event {
		case uffdEventUnmap, uffdEventRemove:
			report(mem.Range{Start: mem.Addr(m.a), End: mem.Addr(m.b)})
		case uffdEventRemap: // takes the pages from a and puts them over what was at b
			report(mem.Range{Start: mem.Addr(m.a), End: mem.Addr(m.a + m.c)})
			report(mem.Range{Start: mem.Addr(m.b), End: mem.Addr(m.b + m.c)})
		}
	})
}

// close disarms by closing the descriptor before the reader stops, so that
// no thread is left waiting for its event to be read.
func (n *uffdNotifier) close() error {
	for _, u := range n.armed {
		uffd.Unregister(n.fd, u.r)
	}
	n.armed = nil
	return errors.Join(n.reader.stop(), unix.Close(n.fd), n.pagemap.Close())
}

func (u *uffdRange) pinning() { u.faults.Store(pageFaults()) }
func (u *uffdRange) pinned() error {
	if !u.intact() {
		return ErrChanged
	}
	return nil
}

func (u *uffdRange) unchanged() bool { return u.faults.Load() == pageFaults() && u.intact() }

func (u *uffdRange) intact() bool {
	return !u.lost.Load() && pagesAre(u.n.pagemap.Fd(), u.r, uffd.WPAllowed|uffd.Present)
}
