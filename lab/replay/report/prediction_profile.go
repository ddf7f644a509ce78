package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"pinwheel/lab/replay"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// The targets of a run that begins with the profile of another run of the same job.
const (
	leastProfiled    = 0.95
	leastProfiledIS  = 0.93 // with manyWorkers
	mostProfiledPeak = 1.03 // of the oracle's
)

// teacher is a trace whose trained entries other replays begin with. It is replayed once for all of them.
type teacher struct {
	path string
	once sync.Once
	err  error
	mu   sync.Mutex // protects ranks while they learn
	// ranks have what each has learned.
	ranks map[int]*predictor.Trained
}

func (w *predictionWriter) teacher(path string) *teacher {
	if w.teachers[path] == nil {
		w.teachers[path] = &teacher{path: path, ranks: map[int]*predictor.Trained{}}
	}
	return w.teachers[path]
}

// trained returns Options.Trained.
func (t *teacher) trained(ctx context.Context, c *Costs) (func(rank int) *predictor.Trained, error) {
	t.once.Do(func() { t.err = t.learn(ctx, c) })
	return func(rank int) *predictor.Trained { return t.ranks[rank] }, t.err
}

func (t *teacher) learn(ctx context.Context, c *Costs) error {
	f, err := trace.Open(t.path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	o := c.options(replay.Pinwheel)
	o.Parallel = 1
	o.Learned = func(rank int, l predictor.Trained) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ranks[rank] = &l
	}
	_, err = replay.Compare(ctx, o, f)
	return err
}

// programOf is the program of a trace without its class and ranks.
func programOf(path string) string {
	name, _, _ := strings.Cut(trace.ProgramFromPath(path), ".")
	return name
}

// planProfiles judges each of two runs by what the other has learned, and without that.
func (w *predictionWriter) planProfiles() {
	for _, path := range w.o.Traces {
		again := filepath.Join(w.o.Again, filepath.Base(path))
		if _, err := os.Stat(again); err != nil {
			continue // not every job has a second run
		}
		for _, p := range [][2]string{{path, again}, {again, path}} {
			w.plan(predictionRow{Part: partProfile, Condition: nothing, path: p[0]})
			for _, workers := range []int{1, manyWorkers} {
				w.plan(predictionRow{
					Part: partProfile, Condition: fmt.Sprintf("profile of %s, workers: %d", runOf(p[1]), workers), path: p[0], teacher: w.teacher(p[1]),
					options: func(o *replay.Options) { o.Workers, o.Policies = workers, append(o.Policies, replay.Clairvoyant) },
				})
			}
		}
	}
}

// runOf tells two runs of a job apart.
func runOf(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + trace.ProgramFromPath(path)
}

// profileRow is one run without a profile, and with that of the other run.
type profileRow struct {
	Trace, From                  string
	Without, With, Many          goal
	Peak                         string
	Clairvoyant, ManyClairvoyant string // captured_avg of perfect predictions
}

// manyWorkers is the number of workers with which IS has its target: its slices are due at one instant.
const manyWorkers = 4

func (w *predictionWriter) profiles() (rows []profileRow) {
	for _, r := range w.of(partProfile) {
		x := r.run.of(replay.Pinwheel)
		g := goal{CapturedAvg: Number(x.CapturedAvg, "%.3f"), Late: lateCell(x), Slowdown: Number(x.Slowdown, "%.4f")}
		if r.teacher == nil {
			rows = append(rows, profileRow{Trace: runOf(r.path), Without: g})
			continue
		}
		row, perfect := &rows[len(rows)-1], Number(r.run.of(replay.Clairvoyant).CapturedAvg, "%.3f")
		isIS := programOf(r.path) == "is"
		mark(&g.Slowdown, *x.Slowdown > mostSlowdown)
		if r.run.options.Workers > 1 {
			mark(&g.CapturedAvg, isIS && captured(x) < leastProfiledIS)
			row.Many, row.ManyClairvoyant = g, perfect
			continue
		}
		mark(&g.CapturedAvg, !isIS && captured(x) < leastProfiled)
		row.From, row.With, row.Peak, row.Clairvoyant = runOf(r.teacher.path), g, peakOf(r.run), perfect
		mark(&row.Peak, peakRatio(r.run) > mostProfiledPeak)
	}
	return rows
}
