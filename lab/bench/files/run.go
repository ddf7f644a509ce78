package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"pinwheel/comm/files/filesbench"
	"pinwheel/internal/measure"
	"pinwheel/internal/signals"
	"pinwheel/lab/kit"
)

// bench is a measurement that goes on.
type bench struct {
	*runCmd
	tree     *tree
	sending  *sender
	copying  *filesbench.Bench
	lifetime context.Context // of what is started for several rows
}

// rowTime is how long a row may take beyond what it measures.
const rowTime = 3 * time.Minute

// Run implements the command run.
func (c *runCmd) Run() (err error) {
	chosen := rows()
	if len(c.Rows) > 0 {
		if chosen, err = kit.Choose(chosen, func(r row) string { return r.name }, c.Rows); err != nil {
			return err
		}
	}
	if c.List {
		for _, r := range chosen {
			fmt.Println(r.name)
		}
		return nil
	}
	if err := newToken(); err != nil {
		return err
	}
	h, err := kit.NewHead(kit.VersionIn(c.Bin), []string{"nginx-light", "nginx-core", "nginx", "curl", "rsync"}, "/proc/self/exe",
		filepath.Join(c.Bin, "pinwheel"), filepath.Join(c.Softverbs, "lib", "libibverbs.so.1"))
	if err != nil {
		return err
	}
	var runs state
	if err := runs.Open(c.Runs, h); err != nil {
		return err
	}
	defer runs.Close()
	ctx, end := signals.Context(context.Background())
	defer end()
	dir, err := os.MkdirTemp(c.Dir, "bench-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{runCmd: c, tree: &tree{dir}, lifetime: ctx}
	defer func() { err = errors.Join(err, b.close()) }()
	return b.measure(ctx, &runs, chosen)
}

// newToken makes the token of all processes of this measurement.
func newToken() error { return os.Setenv(tokenEnv, rand.Text()+rand.Text()) }

// measure measures what is not there yet, round by round. It begins with what failed before.
func (b *bench) measure(ctx context.Context, state *state, chosen []row) error {
	limits := kit.Limits{Began: time.Now(), Budget: b.Budget}
	bar := progressbar.NewOptions(len(chosen)*b.Rounds, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))), progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
	defer bar.Finish() // it can't be written to: then nobody sees it
	failed := 0
	for round := range b.Rounds {
		for _, r := range chosen {
			_ = bar.Add(1)
			if state.find(r.name, round) != nil || r.once && round > 0 {
				continue
			}
			if why := limits.Over(ctx); why != "" {
				say("%s: the same command goes on from here", why)
				return nil
			}
			bar.Describe(r.name)
			l := line{Row: r.name, Round: round, Load: measure.Load()}
			within, end := context.WithTimeout(ctx, rowTime+b.Clients)
			points, err := r.measure(within, b)
			end()
			switch {
			case ctx.Err() != nil:
				say("interrupted: the same command goes on from here")
				return nil
			case errors.Is(err, errNotMeasured):
				l.Failed = err.Error()
			case err != nil:
				l.Failed = err.Error()
				failed++
				say("%s, round %d: %v", r.name, round+1, err)
			default:
				l.Points = points
			}
			if err := state.Add(l); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d measurements failed: the same command tries them again", failed)
	}
	return nil
}

// sender returns the sender, which it starts if it does not run.
func (b *bench) sender(ctx context.Context) (*sender, error) {
	if b.sending == nil {
		s, err := openSender(b.lifetime, b.tree, max(int64(b.Largest), mib), b.Slice)
		if err != nil {
			return nil, err
		}
		b.sending = s
	}
	return b.sending, ctx.Err()
}

// copy copies files from one place to another.
func (b *bench) copy(ctx context.Context, w filesbench.Way) ([]point, error) {
	if why := w.Missing(); why != "" {
		return nil, fmt.Errorf("%w: %s", errNotMeasured, why)
	}
	if b.copying == nil {
		command, err := filepath.Abs(filepath.Join(b.Bin, "pinwheel"))
		if err != nil {
			return nil, err
		}
		c, err := filesbench.Open(b.lifetime, filesbench.Options{
			Command: command, Dir: b.tree.dir, Bytes: int64(b.Largest), Files: b.Small,
		})
		if err != nil {
			return nil, err
		}
		b.copying = c
	}
	cpu, wall, err := b.copying.Measure(w)
	p := point{X: b.copying.Bytes(w.What), N: 1, Seconds: wall.Seconds(), CPU: cpu.Seconds()}
	return []point{p}, errors.Join(err, ctx.Err())
}

func (b *bench) close() (err error) {
	if b.sending != nil {
		err = b.sending.close()
	}
	if b.copying != nil {
		err = errors.Join(err, b.copying.Close())
	}
	return err
}

// failures are rows of rounds that failed and that nothing has made good.
func (s *state) failures() (all []line) {
	for _, l := range s.Lines {
		same := func(o line) bool { return o.Row == l.Row && o.Round == l.Round && o.Failed == l.Failed }
		if l.Failed != "" && s.find(l.Row, l.Round) == nil && !slices.ContainsFunc(all, same) {
			all = append(all, l)
		}
	}
	return all
}
