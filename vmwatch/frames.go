package vmwatch

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"pinwheel/mem"
)

// Bits of a word of /proc/pid/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagemapPresent = 1 << 63
	pagemapPFN     = 1<<55 - 1
)

// frameReader reads physical frame numbers. A pinned page is not freed, so
// the same frame at the same address is the same page.
type frameReader struct {
	pagemap *os.File
}

var errNoFrames = errors.New("/proc/self/pagemap hides frame numbers (needs CAP_SYS_ADMIN when it is opened)")

// openFrames fails unless the kernel shows this process frame numbers.
func openFrames() (*frameReader, error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	fr := &frameReader{f}
	page, free, err := scratch(mem.PageSize)
	if err != nil {
		f.Close()
		return nil, err
	}
	defer free()
	var word [1]uint64
	store(page.Start, 1)
	if err := fr.read(page, word[:]); err != nil || word[0]&pagemapPFN == 0 {
		f.Close()
		return nil, errors.Join(errNoFrames, err)
	}
	return fr, nil
}

func (f *frameReader) close() error { return f.pagemap.Close() }

// read fills out with one word for each page of r.
func (f *frameReader) read(r mem.Range, out []uint64) error {
	b := bytesOf(out)
	n, err := f.pagemap.ReadAt(b, int64(uint64(r.Start)/mem.PageSize*8))
	if n < len(b) {
		return fmt.Errorf("read pagemap of %v: %w", r, err)
	}
	return nil
}

func (f *frameReader) verifier(r mem.Range) verifier {
	return &frameVerifier{reader: f, r: r}
}

// frameVerifier compares the frames of a range with those that were there
// right after pinning.
type frameVerifier struct {
	reader *frameReader
	r      mem.Range

	// mu: a helper thread may register while the communication thread checks.
	// Nothing is locked under it.
	mu     sync.Mutex
	before []uint64 // at Pinning; nil if they couldn't be read
	after  []uint64 // at Pinned; nil while the range isn't registered
}

func (v *frameVerifier) pinning() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.after = nil
	v.before = v.snapshot()
}

// pinned takes the frames that the registration must have. If one isn't what
// it was before, present or not, the device may have taken another: the range
// changed meanwhile, or the registration itself brought the page in or broke a
// share with a forked child. Then the next try finds it in place.
func (v *frameVerifier) pinned() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	after := v.snapshot()
	if after == nil || v.before == nil {
		return ErrChanged
	}
	for i, word := range after {
		if word&pagemapPresent == 0 || (v.before[i]^word)&(pagemapPresent|pagemapPFN) != 0 {
			return ErrChanged
		}
	}
	v.after, v.before = after, nil
	return nil
}

func (v *frameVerifier) snapshot() []uint64 {
	words := make([]uint64, v.r.Pages())
	if v.reader.read(v.r, words) != nil {
		return nil
	}
	return words
}

// unchanged reads the frames piecewise, without allocation.
func (v *frameVerifier) unchanged() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.after == nil {
		return false
	}
	var now [512]uint64
	for done := 0; done < len(v.after); {
		n := min(len(now), len(v.after)-done)
		start := v.r.Start + mem.Addr(uint64(done)*mem.PageSize)
		if v.reader.read(mem.Range{Start: start, End: start + mem.Addr(uint64(n)*mem.PageSize)}, now[:n]) != nil {
			return false
		}
		for i := range n {
			if (now[i]^v.after[done+i])&(pagemapPresent|pagemapPFN) != 0 {
				return false
			}
		}
		done += n
	}
	return true
}
