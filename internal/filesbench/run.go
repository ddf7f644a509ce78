package filesbench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options say what to measure.
type Options struct {
	Command string // pinwheel itself
	Dir     string // where files are made; empty: the one for temporary files
	Bytes   int64  // of the file. 0 stands for 1 GiB
	Files   int    // of the tree. 0 stands for 10,000
	Rounds  int    // 0 stands for 5
	Step    func() // is called after each measurement; may be nil
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	o.Dir = cmp.Or(o.Dir, os.TempDir())
	o.Bytes = cmp.Or(o.Bytes, 1<<30)
	o.Files = cmp.Or(o.Files, 10_000)
	o.Rounds = cmp.Or(o.Rounds, 5)
	if o.Step == nil {
		o.Step = func() {}
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
	CPU  Spread `json:"cpu_s"`
	Wall Spread `json:"wall_s"`
	// Missing says why the way was not measured; empty if it was.
	Missing string `json:"missing,omitempty"`
}

// Spread is the median of the rounds, and their extremes.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func spread(v []float64) Spread {
	slices.Sort(v)
	return Spread{v[len(v)/2], v[0], v[len(v)-1]}
}

// Steps is how often Options.Step will be called.
func Steps(o Options) (int, error) {
	err := o.EnsureDefaults()
	n := 0
	for _, w := range ways() {
		if w.missing() == "" {
			n++
		}
	}
	return o.Rounds * n, err
}

// Run makes all measurements. It fails with the error of ctx if that ends first.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "bench-files-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &stage{ctx: ctx, command: o.Command, dir: dir, source: filepath.Join(dir, "source")}
	s.bytes = map[string]int64{File: o.Bytes}
	if s.bytes[Tree], err = makeSource(s.source, o.Bytes, o.Files); err != nil {
		return nil, err
	}
	all := ways()
	results := make([]Result, len(all))
	cpu, wall := make([][]float64, len(all)), make([][]float64, len(all))
	for round := range o.Rounds {
		for k, w := range all {
			results[k] = Result{What: w.what, Way: w.name, Bytes: s.bytes[w.what], Missing: w.missing()}
			if results[k].Missing != "" {
				continue
			}
			busy, took, err := s.measure(w)
			if err != nil {
				return nil, fmt.Errorf("%s by %s, round %d: %w", w.what, w.name, round+1, err)
			}
			cpu[k], wall[k] = append(cpu[k], busy.Seconds()), append(wall[k], took.Seconds())
			o.Step()
		}
	}
	for k := range results {
		if results[k].Missing == "" {
			results[k].CPU, results[k].Wall = spread(cpu[k]), spread(wall[k])
		}
	}
	return results, nil
}

// measure copies once, and checks that all is there.
func (s *stage) measure(w way) (cpu, wall time.Duration, err error) {
	dest := filepath.Join(s.dir, "dest")
	if err := os.Mkdir(dest, 0o755); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dest)
	cpu, wall, err = w.copy(s, dest)
	if err == nil {
		err = s.ctx.Err()
	}
	if err != nil {
		return 0, 0, err
	}
	var n int64
	err = filepath.Walk(dest, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return err
	})
	if err == nil && n != s.bytes[w.what] {
		err = fmt.Errorf("%d bytes of %d are there", n, s.bytes[w.what])
	}
	return cpu, wall, err
}
