package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/report"
)

// together are the curves of a figure that are compared with each other. They take turns at each size, each time in
// another order: what else the machine does meets all of them, and no ratio of a round is one of its first minute to
// its last.
type together struct {
	names []string
	begin func(ctx context.Context, b *bench) (comparison, error)
	ready map[string][]point // that were measured, but not asked for
}

// comparison has the ways that take turns.
type comparison interface {
	// at returns what takes turns with a file of n bytes.
	at(n int64) ([]candidate, error)
	close() error
}

type candidate interface {
	turn(ctx context.Context, d time.Duration) error
	took() time.Duration // of its turns so far
	result() (point, error)
	close() error
}

// comparedFor is how many times as long as a slice each way is measured at each size: a few percent count, and trials
// of auto should have the share of its time that they have in a server.
const comparedFor = 4

func (b *bench) comparedSlice() time.Duration { return comparedFor * b.Slice }

// turns is how often each way has its turn, unless that takes longer than a slice.
const turns = 4

// rows returns a row for each curve. The first that is asked for has all of them measured.
func (t *together) rows(figure string) (all []row) {
	for _, name := range t.names {
		all = append(all, row{name: figure + "/" + name, measure: func(ctx context.Context, b *bench) ([]point, error) {
			if t.ready[name] == nil {
				var err error
				if t.ready, err = t.measure(ctx, b); err != nil {
					return nil, err
				}
			}
			points := t.ready[name]
			delete(t.ready, name)
			return points, nil
		}})
	}
	return all
}

func (t *together) measure(ctx context.Context, b *bench) (all map[string][]point, err error) {
	c, err := t.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	all = map[string][]point{}
	for _, n := range below(int64(b.Largest), allSizes) {
		points, err := interleave(ctx, c, n, b.comparedSlice())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", report.Size(n), err)
		}
		for i, p := range points {
			all[t.names[i]] = append(all[t.names[i]], p)
		}
	}
	return all, nil
}

// interleave measures the ways with a file of n bytes.
func interleave(ctx context.Context, c comparison, n int64, slice time.Duration) (points []point, err error) {
	ways, err := c.at(n)
	defer func() {
		for _, w := range ways {
			err = errors.Join(err, w.close())
		}
	}()
	if err != nil {
		return nil, err
	}
	for range turns {
		for _, i := range rand.Perm(len(ways)) {
			if w := ways[i]; w.took() < slice {
				if err := w.turn(ctx, slice/turns); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, w := range ways {
		p, err := w.result()
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// repeated is the name of the curve of a strategy that is measured for a second time: what it shows beside the first is
// noise.
func repeated(name string) string { return name + " again" }

// repeatedStrategies are all strategies, with the names of their curves. Those that auto is compared with come twice.
func repeatedStrategies() (names []string, strategies []pipe.Strategy) {
	for _, s := range pipe.Strategies() {
		names, strategies = append(names, s.Name), append(strategies, s)
		if s.Name != pipe.Auto.Name {
			names, strategies = append(names, repeated(s.Name)), append(strategies, s)
		}
	}
	return names, strategies
}

// sendings is the comparison of transfers by one call.
type sendings struct {
	sender *sender
	ways   []way
	slice  time.Duration
}

func (c *sendings) at(n int64) (all []candidate, err error) {
	for i, w := range c.ways {
		g, err := c.sender.begin(n, w, copyOf(n, i), c.slice)
		if err != nil {
			return all, err
		}
		all = append(all, g)
	}
	return all, nil
}

func (c *sendings) close() error { return nil } // the sender is for other rows, too

// strategiesTogether are the curves of a figure in which all strategies send files.
func strategiesTogether(figure string, cold bool) []row {
	names, strategies := repeatedStrategies()
	t := &together{names: names, begin: func(ctx context.Context, b *bench) (comparison, error) {
		s, err := b.sender(ctx)
		if err != nil {
			return nil, err
		}
		c := &sendings{sender: s, slice: b.comparedSlice()}
		for _, strategy := range strategies {
			c.ways = append(c.ways, way{strategy: strategy, cold: cold})
		}
		return c, nil
	}}
	return t.rows(figure)
}
