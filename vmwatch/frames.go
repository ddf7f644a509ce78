package vmwatch

import (
	"errors"
	"slices"
	"sync"

	"pinwheel/mem"
)

// frameReader reads physical frame numbers. A pinned page is not freed, so
// the same frame at the same address is the same page.
type frameReader struct{ *pageReader }

var errNoFrames = errors.New("/proc/self/pagemap hides frame numbers (needs CAP_SYS_ADMIN when it is opened)")

// framesOf fails unless the kernel shows this process frame numbers.
func framesOf(p *pageReader) (*frameReader, error) {
	page, free, err := scratch(mem.PageSize)
	if err != nil {
		return nil, err
	}
	defer free()
	var word [1]uint64
	store(page.Start, 1)
	if err := p.read(page, word[:]); err != nil || word[0]&pagemapPFN == 0 {
		return nil, errors.Join(errNoFrames, err)
	}
	return &frameReader{p}, nil
}

func (f *frameReader) verifier(r mem.Range) verifier {
	return &frameVerifier{reader: f, r: r}
}

// frameVerifier compares the frames of a range with those that were there
// when it was pinned.
type frameVerifier struct {
	reader *frameReader
	r      mem.Range

	// mu: a helper thread may register while the communication thread checks.
	// Nothing is locked under it.
	mu     sync.Mutex
	frames []uint64 // at Pinning, of all pages; fewer if one was absent
	good   bool     // they were there at Pinned too, and the range is registered
}

// pinning reads up to the first page that is absent: what the range needs in
// memory and time is bounded by what is present, whatever its length.
func (v *frameVerifier) pinning() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.good = false
	v.frames = v.frames[:0]
	var words [pagesAtOnce]uint64
	for now := words[:]; len(now) > 0; v.frames = append(v.frames, now...) {
		if now = v.reader.readSome(v.r, uint64(len(v.frames)), &words); slices.ContainsFunc(now, absent) {
			return
		}
	}
}

func absent(word uint64) bool { return word&pagemapPresent == 0 }

// pinned checks that the registration has the frames that were there before.
// If one isn't what it was, or was absent, the device may have taken another: the
// range changed meanwhile, or the registration itself brought the page in or broke a
// share with a forked child. Then the next try finds it in place.
func (v *frameVerifier) pinned() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.good = v.same(); !v.good {
		return mem.ErrChanged
	}
	return nil
}

func (v *frameVerifier) unchanged() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.good && v.same()
}

// same reports, without allocation, whether all frames are those of pinning.
// v.mu is held.
func (v *frameVerifier) same() bool {
	var words [pagesAtOnce]uint64
	done := uint64(0)
	for done < uint64(len(v.frames)) {
		now := v.reader.readSome(v.r, done, &words)
		if len(now) == 0 {
			return false
		}
		for i, word := range now {
			if (word^v.frames[done+uint64(i)])&(pagemapPresent|pagemapPFN) != 0 {
				return false
			}
		}
		done += uint64(len(now))
	}
	return done == v.r.Pages()
}
