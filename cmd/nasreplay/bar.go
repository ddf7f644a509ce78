package main

import (
	"sync"

	"github.com/schollz/progressbar/v3"

	"pinwheel/internal/command"
	"pinwheel/replay"
	"pinwheel/trace"
)

// replayBar shows the progress of all policies of one trace.
type replayBar struct {
	bar *progressbar.ProgressBar

	// mu protects done; policies report from goroutines of their own.
	mu   sync.Mutex
	done map[string]int64 // records replayed, by policy
}

// newReplayBar makes o report to a bar.
func newReplayBar(e *command.Env, f *trace.File, o *replay.Options) *replayBar {
	policies := len(o.Policies)
	if policies == 0 {
		policies = len(replay.Policies())
	}
	var records int64
	for _, r := range f.Ranks() {
		records += int64(f.Records(r))
	}
	b := &replayBar{bar: progress(e, records*int64(policies), f.Header().Program), done: map[string]int64{}}
	if e.Terminal {
		o.Progress = b.report
	}
	return b
}

func (b *replayBar) report(p replay.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.bar.Add64(p.Done - b.done[p.Policy]) // the bar is decoration
	b.done[p.Policy] = p.Done
}

func (b *replayBar) finish() { _ = b.bar.Finish() }
