package realtime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// Options configure a replay in real time. The zero value of a field stands for
// its default.
type Options struct {
	// Options are those of the timeline and of the policies; Policies() by default.
	replay.Options

	Ranks []int   // replayed one after another; rank 0
	Scale float64 // stretches the timeline: 0.1 is ten times as fast; 1
	Pairs int     // how often each policy runs, beside leave-pinned each time; 1
}

// Bounds of a run that somebody can wait for.
const (
	minScale, maxScale = 1e-4, 1e4
	maxPairs           = 1000
)

// Policies are those that run in real time, in the order of a table.
func Policies() []string {
	return []string{replay.LeavePinned, replay.OnDemand, replay.Bounce, replay.LRU, replay.Paper, replay.Pinwheel}
}

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	if len(o.Policies) == 0 {
		o.Policies = Policies()
	}
	o.Options.EnsureDefaults()
	if len(o.Ranks) == 0 {
		o.Ranks = []int{0}
	}
	o.Scale = cmp.Or(o.Scale, 1)
	o.Pairs = cmp.Or(o.Pairs, 1)
}

// Check reports options that no trace can be replayed with.
func (o Options) Check() error {
	o.EnsureDefaults()
	if err := o.Options.Check(); err != nil {
		return err
	}
	for _, policy := range o.Policies {
		if !slices.Contains(Policies(), policy) {
			return fmt.Errorf("policy %q runs in virtual time only (in real time: %s)", policy, strings.Join(Policies(), ", "))
		}
	}
	if !(o.Scale >= minScale && o.Scale <= maxScale) || o.Pairs < 1 || o.Pairs > maxPairs {
		return fmt.Errorf("scale %g, %d pairs: must be from %g to %g, and from 1 to %d", o.Scale, o.Pairs, float64(minScale), float64(maxScale), maxPairs)
	}
	return nil
}

// checkTrace reports what can't be replayed.
func (o *Options) checkTrace(file *trace.File) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.CheckTrace(file); err != nil {
		return err
	}
	for _, rank := range o.Ranks {
		if rank < 0 || rank >= file.Header().Ranks {
			return fmt.Errorf("rank %d is not in this trace of %d ranks", rank, file.Header().Ranks)
		}
	}
	return nil
}
