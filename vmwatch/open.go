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
// some 100 ms of loading for BPF, and the self-test, which maps and unmaps
// scratch memory of its own.
func Open(o Options) (*Watcher, error) {
	o.EnsureDefaults()
	order, ok := choices[o.Mechanism]
	if !ok {
		return nil, fmt.Errorf("vmwatch: mechanism %q is none of %s", o.Mechanism, strings.Join(slices.Sorted(maps.Keys(choices)), ", "))
	}
	var report Report
	for _, m := range order {
		w, err := try(m, &report)
		report.Attempts = append(report.Attempts, Attempt{m, err})
		if err == nil {
			report.Chosen = m
			report.Gaps = m.gaps(w.frames != nil)
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

// try loads m and tests it. A watcher that fails is closed again.
func try(m Mechanism, report *Report) (*Watcher, error) {
	w, err := load(m)
	if err != nil {
		return nil, err
	}
	tested, skipped, err := selfTest(w)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("self-test: %w", err)
	}
	report.Tested, report.Skipped = tested, skipped
	return w, nil
}

func load(m Mechanism) (*Watcher, error) {
	w := &Watcher{mechanism: m, gen: still(), regions: map[uint64]*region{}}
	if m == None {
		return w, nil
	}
	// Frame numbers are a second line for the notifying mechanisms, not a need.
	frames, err := openFrames()
	if err != nil && m == PFN {
		return nil, err
	}
	w.frames = frames
	switch m {
	case Fentry, TPS, TP:
		w.note, err = openBPF(m)
	case Uffd:
		w.note, err = openUffd()
	default:
		return w, nil
	}
	if err != nil {
		w.note = nil
		w.Close()
		return nil, err
	}
	w.gen = w.note.word()
	return w, nil
}
