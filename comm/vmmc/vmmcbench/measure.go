package vmmcbench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"pinwheel/internal/measure"
	"pinwheel/mem"
)

// Options say how long to measure.
type Options struct {
	Time   time.Duration // of each measurement, about. 0 stands for 200 ms
	Rounds int           // 0 stands for 3
	// Step is called before each measurement with what that is, and Failed once for one that fails, which is not tried
	// again. Both may be nil.
	Step   func(what string)
	Failed func(error)
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	o.Time = cmp.Or(o.Time, 200*time.Millisecond)
	o.Rounds = cmp.Or(o.Rounds, 3)
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Time < 0 || o.Time > time.Hour || o.Rounds < 0 || o.Rounds > 1000 {
		return fmt.Errorf("%d rounds of %v", o.Rounds, o.Time)
	}
	return nil
}

// Kinds of measurements.
const (
	Latency   = "latency"   // of one word: half of its way there and back
	Bandwidth = "bandwidth" // of messages in a row
	Flush     = "flush"     // of automatic update, in a mapping of 16 MiB
	Call      = "call"      // without arguments and result
	HTTP      = "http"      // pages of 1 MiB
	Periodic  = "periodic"  // one message in each period
)

// Result is the median of the rounds of a measurement.
type Result struct {
	Kind  string `json:"kind"`
	By    string `json:"by"`   // what carries it
	Over  string `json:"over"` // below that
	Bytes int    `json:"bytes"`
	Pages int    `json:"dirty_pages,omitempty"` // of a Flush
	// NS is the time that each message takes, and CPU the processor time of both ends for it; 0: it was not measured.
	NS    float64 `json:"ns"`
	CPU   float64 `json:"cpu_ns"`
	Lease *Lease  `json:"lease,omitempty"` // of Periodic
	// Failed says why there are no numbers; empty if there are.
	Failed string `json:"failed,omitempty"`
}

// MBs is how many MB, of 10^6 bytes, go through in a second.
func (r *Result) MBs() float64 { return float64(r.Bytes) / r.NS * 1e3 }

// measurement is one that is to be made.
type measurement struct {
	Result   // without its numbers
	messages int
	// begin connects both ends. do sends a number of messages per call, and may be called any number of times.
	begin func(*stage) (do func() error, err error)
	// whole makes the measurement by itself, for a time about; nil: it is that of begin.
	whole func(s *stage, about time.Duration) (figures, error)

	rounds []figures // so far
}

// figures are those of one round: ns of each message, ns of processor time for it, and what Lease has.
type figures struct{ ns, cpu, late, held float64 }

// Steps is how often Options.Step will be called, if nothing fails. The options have their defaults.
func Steps(o Options) int { return o.Rounds * len(all(lookForEquipment())) }

// Run makes all measurements. If ctx ends first, it fails with its error, and returns what was measured so far.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "vmmc") // short, for sun_path
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return o.measure(ctx, dir, all(lookForEquipment()))
}

func (o *Options) measure(ctx context.Context, dir string, ms []measurement) ([]Result, error) {
	for range o.Rounds {
		for k := range ms {
			m := &ms[k]
			if m.Failed != "" {
				continue
			}
			o.Step(m.what())
			f, err := m.make(ctx, dir, o.Time)
			if ctx.Err() != nil {
				return resultsOf(ms), ctx.Err()
			}
			if err != nil {
				m.Failed = err.Error()
				o.Failed(fmt.Errorf("%s: %w", m.what(), err))
				continue
			}
			m.rounds = append(m.rounds, f)
		}
	}
	return resultsOf(ms), nil
}

// what names a measurement in a line.
func (m *measurement) what() string {
	what := fmt.Sprintf("%s by %s over %s", m.Kind, m.By, m.Over)
	if m.Bytes > 0 {
		what += ", " + mem.FormatBytes(uint64(m.Bytes))
	}
	return what
}

// resultsOf are the medians of what was measured, and what failed.
func resultsOf(ms []measurement) (results []Result) {
	for _, m := range ms {
		switch {
		case m.Failed != "":
			m.Lease = nil
		case len(m.rounds) == 0:
			continue
		default:
			m.NS = median(m.rounds, func(f figures) float64 { return f.ns })
			m.CPU = median(m.rounds, func(f figures) float64 { return f.cpu })
			if m.Lease != nil {
				m.Lease.Late = median(m.rounds, func(f figures) float64 { return f.late })
				m.Lease.Held = median(m.rounds, func(f figures) float64 { return f.held })
			}
		}
		results = append(results, m.Result)
	}
	return results
}

func median(rounds []figures, of func(figures) float64) float64 {
	var v []float64
	for _, f := range rounds {
		v = append(v, of(f))
	}
	return measure.Median(v)
}

// make measures once, for a time about.
func (m *measurement) make(ctx context.Context, dir string, about time.Duration) (f figures, err error) {
	s := &stage{ctx: ctx, dir: dir}
	defer s.end()
	if m.whole != nil {
		return m.whole(s, about)
	}
	do, err := m.begin(s)
	if err != nil {
		return f, err
	}
	// The first tenth of the time warms up, and says how many calls fill the rest.
	calls := 0
	begin := time.Now()
	for time.Since(begin) < about/10 || calls == 0 {
		if err := do(); err != nil {
			return f, err
		}
		calls++
	}
	calls = max(1, int(float64(calls)*float64(about)/float64(time.Since(begin))))
	if err := ctx.Err(); err != nil {
		return f, err
	}
	busy, begin := measure.ProcessorTime(), time.Now()
	for range calls {
		if err := do(); err != nil {
			return f, err
		}
	}
	took, n := time.Since(begin), float64(calls*m.messages)
	return figures{ns: float64(took) / n, cpu: float64(measure.ProcessorTime()-busy) / n}, ctx.Err()
}
