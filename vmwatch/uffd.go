//go:build amd64 || arm64

package vmwatch

import (
	"errors"

	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// uffdNotifier follows private anonymous memory with userfaultfd.
//
// Its events alone are too late: munmap tells after the address is free, and another thread may have it by then. So each
// hit also asks whether
//
//   - a change is under way (uffd.IsChanging). The kernel says so from before a change until its event is read, and the
//     generation moves before that;
//   - the range still belongs to mappings that were armed, as one mapped since doesn't: shmat(2) with SHM_REMAP has no
//     event;
//   - every page is present, as pinned ones always are.
//
// There are changes of which userfaultfd tells too early, or not at all. The event of MADV_DONTNEED comes before the pages
// go, and who registers them between the two has the old ones: what has lost pages in that way once is not trusted. And
// no event tells of MADV_GUARD_INSTALL: where the kernel has that, nothing is trusted. Of what is not, a hit asks instead
// of the first whether the process has taken any page fault since the range was pinned, without which no other page can
// have appeared in it.
//
// What is armed is whole granules of the mappings in which the ranges lie: buffers that lie close
// together then split a mapping once, and a huge page not at all.
//
// ranges, held and crowd are guarded by source.mu; the rest but removed doesn't change.
type uffdNotifier struct {
	fd      int
	pages   *pageReader // the source's
	reader  *uffdReader
	ranges  mem.Index[*uffdRange]
	held    mem.Counts // granules that ranges touch
	crowd   crowd
	guards  bool // the kernel has MADV_GUARD_INSTALL
	removed removedRanges
}

func openUffd(pages *pageReader) (notifier, error) {
	fd, err := uffd.Open(uffdFeatures)
	if err != nil {
		return nil, err
	}
	reader, err := startReader(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &uffdNotifier{fd: fd, pages: pages, reader: reader, crowd: newCrowd(), guards: hasGuards()}, nil
}

func (n *uffdNotifier) word() *uint64 { return &n.reader.shared.generation }

func (n *uffdNotifier) arm(r mem.Range) (verifier, error) {
	unit := wholeGranules(r)
	added := len(n.held.Add(unit)) > 0
	if added {
		if err := n.crowd.admit(n.held.Runs()); err != nil {
			n.held.Remove(unit)
			return nil, err
		}
	}
	if added || !n.pagesAre(r, uffd.WPAllowed) {
		if err := n.register(r, unit); err != nil {
			n.letGo(unit)
			return nil, err
		}
	}
	u := &uffdRange{r: r, n: n}
	u.faults.Store(-1)
	n.ranges.Add(u.r, u)
	return u, nil
}

// register arms the mappings of r within unit. A mapping that has replaced part of another range would then look like
// the one that was armed for that, so the others are looked at before.
func (n *uffdNotifier) register(r, unit mem.Range) error {
	all, err := mappingsIn(r)
	if err != nil {
		return err
	}
	for _, m := range all {
		part := intersection(m.Range, unit)
		n.ranges.Overlapping(part, func(o *uffdRange) {
			if !o.lost.Load() && !n.pagesAre(o.r, uffd.WPAllowed) {
				o.lost.Store(true)
			}
		})
		if err := uffd.Register(n.fd, part); err != nil {
			return err
		}
	}
	return nil
}

func (n *uffdNotifier) disarm(_ mem.Range, v verifier) {
	u := v.(*uffdRange)
	n.ranges.Remove(u.r, u)
	n.letGo(wholeGranules(u.r))
}

// letGo disarms what nobody else holds of unit.
func (n *uffdNotifier) letGo(unit mem.Range) {
	for _, r := range n.held.Remove(unit) {
		n.unregister(r)
	}
}

// unregister asks for each mapping by itself, since the kernel refuses a range with one that can't be armed.
func (n *uffdNotifier) unregister(r mem.Range) {
	all, _ := mappingsIn(r) // without an answer they end with the descriptor
	for _, m := range all {
		if isPrivateAnonymous(m) {
			uffd.Unregister(n.fd, intersection(m.Range, r))
		}
	}
}

func wholeGranules(r mem.Range) mem.Range {
	const mask = 1<<GranuleBits - 1
	return mem.Range{Start: r.Start &^ mask, End: (r.End + mask) &^ mask}
}

func intersection(a, b mem.Range) mem.Range {
	return mem.Range{Start: max(a.Start, b.Start), End: min(a.End, b.End)}
}

func (n *uffdNotifier) first() uint64 { return n.reader.first() }

func (n *uffdNotifier) drain(seen uint64, report func(mem.Range)) (next uint64, overrun bool) {
	read := uint64(0)
	next, overrun = n.reader.drain(seen, func(m uffdMsg) {
		read++
		switch m.event {
		case uffdEventRemove:
			r := mem.Range{Start: mem.Addr(m.a), End: mem.Addr(m.b)}
			n.removed.add(r)
			report(r)
		case uffdEventUnmap:
			report(mem.Range{Start: mem.Addr(m.a), End: mem.Addr(m.b)})
		case uffdEventRemap: // takes the pages from a and puts them over what was at b
			report(mem.Range{Start: mem.Addr(m.a), End: mem.Addr(m.a + m.c)})
			report(mem.Range{Start: mem.Addr(m.b), End: mem.Addr(m.b + m.c)})
		}
	})
	if seen+read != next { // some are lost
		n.removed.addAll()
	}
	return next, overrun
}

func (n *uffdNotifier) changesAreOver(r mem.Range) { n.removed.remove(r) }

// close disarms before the reader stops, so that no thread is left waiting for its event to be read. The
// reader's own memory may lie in an armed granule, so it goes last.
func (n *uffdNotifier) close() error {
	for r := range n.held.All() {
		n.unregister(r)
	}
	return errors.Join(n.reader.stop(), unix.Close(n.fd), n.reader.free())
}

func (u *uffdRange) pinning() {
	u.trusted.Store(false)
	u.faults.Store(pageFaults())
}

// pinned decides whether hits trust what they are told: pages that an event has told of before may go only now. Of later events
// the cache hears while it knows the range.
func (u *uffdRange) pinned() error {
	if !u.intact() {
		return mem.ErrChanged
	}
	u.trusted.Store(!u.n.guards && !u.n.removed.overlap(u.r))
	return nil
}

func (u *uffdRange) unchanged() bool {
	if u.trusted.Load() {
		return !uffd.IsChanging(u.n.fd) && u.intact()
	}
	return u.faults.Load() == pageFaults() && u.intact()
}

func (u *uffdRange) intact() bool {
	return !u.lost.Load() && u.n.pagesAre(u.r, uffd.WPAllowed|uffd.Present)
}

func (n *uffdNotifier) pagesAre(r mem.Range, properties uint64) bool {
	are, err := n.pages.scan(r, properties, 0)
	return are && err == nil
}
