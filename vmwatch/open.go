package vmwatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options configure Open.
type Options struct {
	// Mechanism is the value of PINWHEEL_WATCH: auto, bpf, fentry, tps, tp,
	// uffd, pfn or none. Empty means auto.
	Mechanism string
	// Board is where processes of a job find what one of them has loaded. nil: each loads its own.
	Board Board
	// Service is the socket of the node's watch service, which is asked before this process loads BPF programs; empty or
	// off: it is not. ServicePath is where it listens by default.
	Service string
	// OnRefused, if not nil, is called with a sentence for the first range that is refused with ErrCrowded, and for the
	// first with ErrForeign. It must not call the Watcher.
	OnRefused func(string)
}

// EnsureDefaults replaces empty fields by the defaults.
func (o *Options) EnsureDefaults() {
	o.Mechanism = cmp.Or(o.Mechanism, "auto")
}

// Open watches the calling process with the first of the given mechanisms that loads and passes
// its self-test. With auto it can't fail, since none always works; otherwise it fails with
// ErrUnavailable, or ErrMechanism. The first Watcher of a mechanism takes about 10 ms of processor time to load BPF programs and
// for the self-test, which maps and unmaps memory of its own; less than 1 ms if another process of the job has done so.
func Open(o Options) (*Watcher, error) {
	o.EnsureDefaults()
	order, ok := choices[o.Mechanism]
	if !ok {
		return nil, fmt.Errorf("%w: %q is none of %s", ErrMechanism, o.Mechanism,
			strings.Join(slices.Sorted(maps.Keys(choices)), ", "))
	}
	if o.Board != nil {
		o.Board = &oneWait{Board: o.Board}
	}
	node := &service{path: o.Service}
	defer node.close()
	var report Report
	for _, m := range order {
		src, err := acquireSource(m, node, o.Board)
		report.Attempts = append(report.Attempts, Attempt{m, err})
		if err == nil {
			report.Chosen, report.Service, report.Gaps = m, src.service, m.gaps(src.frames != nil)
			report.Tested, report.Skipped = src.tested, src.skipped
			w := newWatcher(src)
			w.report, w.onRefused = report, o.OnRefused
			return w, nil
		}
	}
	why := make([]string, len(report.Attempts))
	for i, a := range report.Attempts {
		why[i] = fmt.Sprintf("%v: %v", a.Mechanism, a.Err)
	}
	return nil, fmt.Errorf("%w (choose another with PINWHEEL_WATCH): %s", ErrUnavailable, strings.Join(why, "; "))
}
