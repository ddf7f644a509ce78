package vmwatch

import (
	"errors"
	"fmt"
	"sync"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// notifier publishes changes of armed ranges in a log that any number of
// Watchers read.
type notifier interface {
	// word is the generation counter, outside the Go heap. It moves before
	// anyone can rely on a change of an armed range.
	word() *uint64
	// arm begins notification for r. With a verifier, notification alone isn't
	// enough. Called with source.mu held.
	arm(r mem.Range) (verifier, error)
	// disarm ends it, once for each arm, with what arm returned. Called with
	// source.mu held.
	disarm(r mem.Range, v verifier)
	// first is the number of the next record to be published.
	first() uint64
	// drain reports what was published since record seen; overrun if that
	// isn't all. next is seen for the next drain.
	drain(seen uint64, report func(mem.Range)) (next uint64, overrun bool)
	close() error
}

// interested is a notifier that C code can tell which ranges to watch.
type interested interface {
	interests() *interest
	records() *uint64
}

// source is a mechanism at work in this process. All Watchers with the same
// mechanism share it: it is loaded and tested once, a mapping can belong to one
// userfaultfd only, and every set of BPF programs costs each system call.
type source struct {
	mechanism Mechanism
	service   bool         // the watch service of the node has loaded the programs
	note      notifier     // nil for pfn and none
	pages     *pageReader  // nil for none
	frames    *frameReader // of pages; nil where the kernel hides frame numbers
	tested    []string
	skipped   []string
	users     int // guarded by sources.mu

	// mu orders arming. Taken inside Watcher.mu; no lock is taken inside it.
	mu sync.Mutex
}

// sources are those with users.
var sources = struct {
	// mu is held while a source is loaded and tested, so that two Opens don't
	// both do it. No lock but those of the new source is taken inside it.
	mu   sync.Mutex
	open map[Mechanism]*source
}{open: map[Mechanism]*source{}}

// acquireSource returns the process's source for m, and if nobody uses it yet gets it from the service, finds it by the
// board, which may be nil, or loads it.
func acquireSource(m Mechanism, node *service, board Board) (*source, error) {
	sources.mu.Lock()
	defer sources.mu.Unlock()
	if s := sources.open[m]; s != nil {
		s.users++
		return s, nil
	}
	s, err := node.watchBy(m)
	if err != nil {
		refused := err
		if s, err = loadOrJoin(m, board); err != nil && !errors.Is(refused, errNoService) {
			err = fmt.Errorf("%w; %w", err, refused)
		}
	}
	if err != nil {
		return nil, err
	}
	if n, ok := s.note.(*bpfNotifier); ok {
		n.links = linger(n.links)
	}
	s.users = 1
	sources.open[m] = s
	return s, nil
}

func loadAndTest(m Mechanism) (*source, error) {
	s, err := load(m)
	if err != nil {
		return nil, err
	}
	return s.testedFor(change.Kinds)
}

// testedFor returns s if it notices changes of these kinds. Otherwise, or after a panic, it closes s: programs that
// stay attached cost every system call of the node.
func (s *source) testedFor(kinds []change.Kind) (_ *source, err error) {
	passed := false
	defer func() {
		if !passed {
			err = errors.Join(err, s.close())
		}
	}()
	if s.tested, s.skipped, err = selfTest(newWatcher(s), kinds); err != nil {
		return nil, fmt.Errorf("self-test: %w", err)
	}
	passed = true
	return s, nil
}

// release closes s after its last user.
func (s *source) release() error {
	sources.mu.Lock()
	defer sources.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	delete(sources.open, s.mechanism)
	return s.close()
}

func load(m Mechanism) (*source, error) {
	s := &source{mechanism: m}
	if m == None {
		return s, nil
	}
	err := s.openPages()
	if err == nil && m == PFN && s.frames == nil {
		err = errNoFrames
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	switch m {
	case Fentry, TPS, TP:
		s.note, err = openBPF(m, s.pages)
	case Uffd:
		s.note, err = openUffd(s.pages)
	default:
		return s, nil
	}
	if err != nil {
		s.note = nil
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openPages opens the page table. Frame numbers are a second line for the notifying mechanisms, not a need.
func (s *source) openPages() (err error) {
	if s.pages, err = openPages(); err == nil {
		s.frames, _ = framesOf(s.pages)
	}
	return err
}

func (s *source) close() error {
	var errs []error
	if s.note != nil {
		errs = append(errs, s.note.close())
	}
	if s.pages != nil {
		errs = append(errs, s.pages.close())
	}
	return errors.Join(errs...)
}

func (s *source) arm(r mem.Range) (verifier, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note.arm(r)
}

func (s *source) disarm(r mem.Range, v verifier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note.disarm(r, v)
}
