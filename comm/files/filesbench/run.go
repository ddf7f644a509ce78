package filesbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pinwheel/internal/measure"
)

// Options say what to measure.
type Options struct {
	Command string // pinwheel itself
	Dir     string // where files are made; empty: the one for temporary files
	Bytes   int64  // of the file. 0 stands for 1 GiB
	Files   int    // of the tree. 0 stands for 10,000
	Rounds  int    // 0 stands for 5
	// Step is called before each measurement with what that is, and Failed once for a way that fails, which is not tried
	// again. Both may be nil.
	Step   func(what string)
	Failed func(error)
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	o.Dir = cmp.Or(o.Dir, os.TempDir())
	o.Bytes = cmp.Or(o.Bytes, 1<<30)
	o.Files = cmp.Or(o.Files, 10_000)
	o.Rounds = cmp.Or(o.Rounds, 5)
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Bytes < 0 || o.Files < 0 || o.Files > 1_000_000 || o.Rounds < 0 || o.Rounds > 1000 {
		return fmt.Errorf("a file of %d bytes, %d files, %d rounds", o.Bytes, o.Files, o.Rounds)
	}
	return nil
}

// What is copied.
const (
	File = "file" // one, large, and in the page cache
	Tree = "tree" // of small files
)

// Result is what a way of copying took in all rounds.
type Result struct {
	What  string `json:"what"`
	Way   string `json:"way"`
	Bytes int64  `json:"bytes"`
	// CPU is the processor time of both ends, and Wall the time that the client ran, in seconds.
	CPU  measure.Estimate `json:"cpu_s"`
	Wall measure.Estimate `json:"wall_s"`
	// Missing says why the way was not measured; empty if it was.
	Missing string `json:"missing,omitempty"`
}

// Summary makes a Result of what a way took in some rounds, at least one.
func Summary(w Way, bytes int64, cpu, wall []float64) Result {
	return Result{What: w.What, Way: w.Name, Bytes: bytes, CPU: measure.Estimated(cpu), Wall: measure.Estimated(wall)}
}

// Steps is how often Options.Step will be called, if nothing fails. The options have their defaults.
func Steps(o Options) int {
	n := 0
	for _, w := range Ways() {
		if w.Missing() == "" {
			n++
		}
	}
	return o.Rounds * n
}

// Run makes all measurements. If ctx ends first, it fails with its error, and returns what was measured so far.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	b, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.Close() // what it leaves is temporary
	return o.measure(ctx, b, Ways())
}

func (o *Options) measure(ctx context.Context, b *Bench, all []Way) (results []Result, err error) {
	missing := make([]string, len(all))
	for k, w := range all {
		missing[k] = w.Missing()
	}
	cpu, wall := make([][]float64, len(all)), make([][]float64, len(all))
rounds:
	for range o.Rounds {
		for k, w := range all {
			if missing[k] != "" {
				continue
			}
			o.Step(w.What + " by " + w.Name)
			busy, took, failed := b.Measure(w)
			if err = ctx.Err(); err != nil {
				break rounds
			}
			if failed != nil {
				missing[k] = failed.Error()
				o.Failed(failed)
				continue
			}
			cpu[k], wall[k] = append(cpu[k], busy.Seconds()), append(wall[k], took.Seconds())
		}
	}
	for k, w := range all {
		switch {
		case missing[k] != "":
			results = append(results, Result{What: w.What, Way: w.Name, Bytes: b.Bytes(w.What), Missing: missing[k]})
		case len(cpu[k]) > 0:
			results = append(results, Summary(w, b.Bytes(w.What), cpu[k], wall[k]))
		}
	}
	return results, err
}

// Bench has the files that ways of copying are measured with.
type Bench struct {
	stage
	reserve reserve
}

// Open makes the files. They stay until Close. Its processes end with ctx.
func Open(ctx context.Context, o Options) (*Bench, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "bench-files-")
	if err != nil {
		return nil, err
	}
	b := &Bench{
		stage:   stage{ctx: ctx, command: o.Command, dir: dir, source: filepath.Join(dir, "source")},
		reserve: reserve{bytes: o.Bytes + o.Bytes/4 + aside},
	}
	b.bytes = map[string]int64{File: o.Bytes}
	if b.bytes[Tree], err = makeSource(b.source, o.Bytes, o.Files); err == nil {
		err = b.reserve.take()
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close removes the files.
func (b *Bench) Close() error { return errors.Join(os.RemoveAll(b.dir), b.reserve.give()) }

// Bytes are those of File, or of Tree.
func (b *Bench) Bytes(what string) int64 { return b.bytes[what] }

// Measure copies once, and checks that all is there. It returns the processor time of both ends, and how long the
// client ran.
func (b *Bench) Measure(w Way) (cpu, wall time.Duration, err error) {
	dest := filepath.Join(b.dir, "dest")
	if err := os.Mkdir(dest, 0o755); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dest), b.reserve.take()) }()
	if err = b.reserve.give(); err == nil {
		cpu, wall, err = w.copy(&b.stage, dest)
	}
	if err == nil {
		err = b.ctx.Err()
	}
	var n int64
	if err == nil {
		n, err = bytesBelow(dest)
	}
	if err == nil && n != b.bytes[w.What] {
		err = fmt.Errorf("%d bytes of %d are there", n, b.bytes[w.What])
	}
	if err != nil {
		err = fmt.Errorf("%s by %s: %w", w.What, w.Name, err)
	}
	return cpu, wall, err
}

func bytesBelow(dir string) (n int64, err error) {
	err = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return err
	})
	return n, err
}
