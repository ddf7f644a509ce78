package main

import (
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"pinwheel/comm/files/transfer"
	"pinwheel/internal/console"
	"pinwheel/internal/tools/command"
)

// newBar is a bar that a terminal shows until it is finished.
func newBar(e *command.Env, steps int64, what string, visible bool, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(steps, slices.Concat([]progressbar.Option{
		progressbar.OptionSetWriter(e.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionSetVisibility(visible && e.Terminal), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
		progressbar.OptionSetSpinnerChangeInterval(0), // else it has a goroutine, which takes processor time
	}, more)...)
}

// progress shows how far a copy is, on a terminal.
type progress struct {
	env   *command.Env
	meter *transfer.Meter
	end   chan struct{}
	ended sync.WaitGroup

	mu  sync.Mutex // lets one goroutine print
	bar *progressbar.ProgressBar
}

func watch(e *command.Env, m *transfer.Meter, what string, visible bool) *progress {
	p := &progress{env: e, meter: m, end: make(chan struct{})}
	p.bar = newBar(e, 1, console.Printable(what), visible, progressbar.OptionShowBytes(true))
	if visible && e.Terminal {
		p.bar.StartWithoutRender() // else it counts the time from the first bytes on, which then took none
		p.ended.Go(p.draw)
	}
	return p
}

func (p *progress) draw() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		// One more than there is keeps the bar from finishing before the end.
		p.bar.ChangeMax64(p.meter.TotalBytes.Load() + 1)
		_ = p.bar.Set64(p.meter.Bytes.Load()) // the terminal is no result
		p.mu.Unlock()
	}
}

// failed complains of a file, above the bar.
func (p *progress) failed(err error) { p.above(func() { p.env.Complain(err) }) }

// note says something that is no failure, above the bar.
func (p *progress) note(line string) { p.above(func() { p.env.Note("%s", line) }) }

func (p *progress) above(say func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	say()
}

func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	_ = p.bar.Finish()
}
