package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/comm/files/pipe"
	"pinwheel/internal/measure"
)

// slow is a way whose transfers take a time each, by a clock of its own.
type slow struct {
	name  string
	each  time.Duration
	log   *[]string
	point point
}

func (s *slow) turn(_ context.Context, d time.Duration) error {
	*s.log = append(*s.log, s.name)
	n := max(int(d/s.each), 1)
	s.point.N += n
	return nil
}
func (s *slow) took() time.Duration    { return time.Duration(s.point.N) * s.each }
func (s *slow) result() (point, error) { return s.point, nil }
func (s *slow) close() error           { *s.log = append(*s.log, "close "+s.name); return nil }

// slows is a comparison of them.
type slows struct{ log *[]string }

func (c *slows) at(n int64) (all []candidate, err error) {
	for name, each := range map[string]time.Duration{"a": time.Millisecond, "b": 2 * time.Millisecond, "c": time.Second} {
		all = append(all, &slow{name: name, each: each, log: c.log, point: point{X: n}})
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.(*slow).name, b.(*slow).name) })
	return all, nil
}
func (c *slows) close() error { return nil }

// Whatever happens beside meets all ways alike: none has its second turn before each other one has had its first.
func TestWaysTakeTurns(t *testing.T) {
	var log []string
	const slice = 40 * time.Millisecond
	points, err := interleave(t.Context(), &slows{&log}, kib, slice)
	if err != nil || len(points) != 3 || points[0].N != 40 || points[1].N != 20 || points[2].N != 1 {
		t.Errorf("%+v, %v", points, err)
	}
	two := []string{"a", "b"}
	for i, round := range [][]string{{"a", "b", "c"}, two, two, two, {"close a", "close b", "close c"}} {
		if got := slices.Sorted(slices.Values(log[:min(len(round), len(log))])); !slices.Equal(got, round) {
			t.Errorf("turn %d: %q", i, got)
		}
		log = log[min(len(round), len(log)):]
	}
}

// The first row of a figure has all of them measured, and each round anew.
func TestCurvesAreMeasuredTogether(t *testing.T) {
	begun := 0
	var log []string
	c := together{names: []string{"a", "b", "c"}, begin: func(context.Context, *bench) (comparison, error) {
		begun++
		return &slows{&log}, nil
	}}
	b := &bench{runCmd: &runCmd{Slice: time.Millisecond, Largest: kib}}
	for round := range 2 {
		for _, r := range c.rows("figure") {
			points, err := r.measure(t.Context(), b)
			if err != nil || len(points) != 3 || points[2].X != kib || begun != round+1 {
				t.Errorf("%s, round %d, begun %d times: %+v, %v", r.name, round, begun, points, err)
			}
		}
	}
}

// The page says what a way shows that is no slower than the best.
func TestNoiseIsToldBesideAuto(t *testing.T) {
	s := measured()
	for round := range 2 {
		best := s.find("10-cold/sendfile", round)
		again := line{Row: "10-cold/" + repeated("sendfile"), Round: round, Points: slices.Clone(best.Points)}
		again.Points[1].Seconds *= 1.25
		s.Lines = append(s.Lines, again)
		for _, strategy := range pipe.Strategies() {
			points := s.find("10-cold/"+strategy.Name, round).Points
			for i := range points {
				points[i].CPU = 1
			}
			if strategy.Name == pipe.Auto.Name {
				points[2].CPU = 1.25
			}
		}
	}
	is := func(c measure.Claim) bool {
		return strings.Contains(c.What, "cold file") && c.Holds() &&
			strings.HasSuffix(c.Got(), "; the best itself, measured again: 0.800 at 1 KiB; by processor time: 0.800 at 1 GiB")
	}
	if !slices.ContainsFunc(s.claims(), is) {
		t.Errorf("%+v", s.claims())
	}
}
