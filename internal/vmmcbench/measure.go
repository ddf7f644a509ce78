package vmmcbench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Options say how long to measure.
type Options struct {
	Time   time.Duration // of each measurement, about. 0 stands for 200 ms
	Rounds int           // 0 stands for 3
	Step   func()        // is called after each measurement; may be nil
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	o.Time = cmp.Or(o.Time, 200*time.Millisecond)
	o.Rounds = cmp.Or(o.Rounds, 3)
	if o.Step == nil {
		o.Step = func() {}
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
}

// figures are those of one round: ns of each message, ns of processor time for it, and what Lease has.
type figures struct{ ns, cpu, late, held float64 }

// Steps is how often Options.Step will be called.
func Steps(o Options) (int, error) {
	err := o.EnsureDefaults()
	return o.Rounds * len(all(lookForEquipment())), err
}

// Run makes all measurements. It fails with the error of ctx if that ends first.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "vmmc") // short, for sun_path
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ms := all(lookForEquipment())
	rounds := make([][]figures, len(ms))
	for range o.Rounds {
		for k := range ms {
			f, err := ms[k].make(ctx, dir, o.Time)
			if err != nil {
				return nil, fmt.Errorf("%s by %s over %s: %w", ms[k].Kind, ms[k].By, ms[k].Over, err)
			}
			rounds[k] = append(rounds[k], f)
			o.Step()
		}
	}
	var results []Result
	for k, m := range ms {
		m.NS = median(rounds[k], func(f figures) float64 { return f.ns })
		m.CPU = median(rounds[k], func(f figures) float64 { return f.cpu })
		if m.Lease != nil {
			m.Lease.Late = median(rounds[k], func(f figures) float64 { return f.late })
			m.Lease.Held = median(rounds[k], func(f figures) float64 { return f.held })
		}
		results = append(results, m.Result)
	}
	return results, nil
}

func median(rounds []figures, of func(figures) float64) float64 {
	var v []float64
	for _, f := range rounds {
		v = append(v, of(f))
	}
	slices.Sort(v)
	return v[len(v)/2]
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
	busy, begin := processorTime(), time.Now()
	for range calls {
		if err := do(); err != nil {
			return f, err
		}
	}
	took, n := time.Since(begin), float64(calls*m.messages)
	return figures{ns: float64(took) / n, cpu: float64(processorTime()-busy) / n}, ctx.Err()
}

// processorTime is that of this process so far, with that of the kernel for it.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err) // it fails for wrong arguments only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
