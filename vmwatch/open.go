package vmwatch

import (
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
}

// EnsureDefaults fills in what was left empty.
func (o *Options) EnsureDefaults() {
	if o.Mechanism == "" {
		o.Mechanism = "auto"
	}
}

// Open watches the calling process with the first mechanism of the choice
// that loads and passes its self-test. With auto it can't fail: none remains.
// It fails with ErrUnavailable if what was asked for doesn't work here. Cost:
// for the first Watcher of a mechanism some 100 ms of loading for BPF, and the
// self-test, which maps and unmaps scratch memory of its own.
func Open(o Options) (*Watcher, error) {
	o.EnsureDefaults()
	order, ok := choices[o.Mechanism]
	if !ok {
		return nil, fmt.Errorf("vmwatch: mechanism %q is none of %s", o.Mechanism, strings.Join(slices.Sorted(maps.Keys(choices)), ", "))
	}
	var report Report
	for _, m := range order {
		src, err := acquireSource(m)
		report.Attempts = append(report.Attempts, Attempt{m, err})
		if err == nil {
			report.Chosen, report.Gaps = m, m.gaps(src.frames != nil)
			report.Tested, report.Skipped = src.tested, src.skipped
			w := newWatcher(src)
			w.report = report
			return w, nil
		}
	}
	why := make([]string, len(report.Attempts))
	for i, a := range report.Attempts {
		why[i] = fmt.Sprintf("%v: %v", a.Mechanism, a.Err)
	}
	return nil, fmt.Errorf("%w (choose another with PINWHEEL_WATCH): %s", ErrUnavailable, strings.Join(why, "; "))
}
