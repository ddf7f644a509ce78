package vmwatch

import (
	"fmt"
	"os"
	"slices"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// Bits of a word of /proc/pid/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagemapPresent = 1 << 63
	pagemapSwapped = 1 << 62 // or on its way to another frame
	pagemapPFN     = 1<<55 - 1
)

// pageReader reads the page table of this process. The kernel shows everyone which of their pages are there.
type pageReader struct{ pagemap *os.File }

func openPages() (*pageReader, error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	return &pageReader{f}, nil
}

func (p *pageReader) close() error { return p.pagemap.Close() }

// read fills out with one word for each page of r.
func (p *pageReader) read(r mem.Range, out []uint64) error {
	b := bytesOf(out)
	n, err := p.pagemap.ReadAt(b, int64(uint64(r.Start)/mem.PageSize*8))
	if n < len(b) {
		return fmt.Errorf("read pagemap of %v: %w", r, err)
	}
	return nil
}

// pagesAtOnce is how many pages are looked up with one system call: what the kernel does in one go.
const pagesAtOnce = 512

// readSome returns the words of the next pages of r after the first done ones; none at the end of the range, or
// where they can't be read.
func (p *pageReader) readSome(r mem.Range, done uint64, words *[pagesAtOnce]uint64) []uint64 {
	n := min(r.Pages()-done, pagesAtOnce)
	start := r.Start + mem.Addr(done*mem.PageSize)
	now := words[:n]
	if n == 0 || p.read(mem.Range{Start: start, End: start + mem.Addr(n*mem.PageSize)}, now) != nil {
		return nil
	}
	return now
}

// areOurs reports whether each page of r is one of this process. What a device has registered from memory of its own,
// as that of a GPU, has an address, but no pages, or those of a driver (VM_PFNMAP), which the kernel passes over. All
// pages are looked at: to look only at the first of each mapping would take a call for each mapping.
func (p *pageReader) areOurs(r mem.Range) bool {
	// Before Linux 6.7 they are read, which takes two to three times as long.
	if ours, err := p.scan(r, 0, uffd.Present|uffd.Swapped); err == nil {
		return ours
	}
	return p.areThere(r)
}

// areThere reports whether each page of r is in memory or swapped.
func (p *pageReader) areThere(r mem.Range) bool {
	var words [pagesAtOnce]uint64
	done := uint64(0)
	for now := words[:]; len(now) > 0 && done < r.Pages(); done += uint64(len(now)) {
		if now = p.readSome(r, done, &words); slices.ContainsFunc(now, isNowhere) {
			return false
		}
	}
	return done == r.Pages()
}

func isNowhere(word uint64) bool { return word&(pagemapPresent|pagemapSwapped) == 0 }
