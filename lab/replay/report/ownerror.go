package report

import (
	"sync"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/schedule"
)

// ownErrors are the errors of periods as the paper defines them: the shortest
// time seen between two uses of one signature, against the next time between
// two uses of the same one. What predictor.Scored counts is stricter: the distance of the
// prediction from the region's next need, wherever it comes from.
type ownErrors struct {
	n, below05, below5 int64
}

func (e *ownErrors) add(expectedNs, seenNs int64) {
	e.n++
	off := float64(max(expectedNs-seenNs, seenNs-expectedNs)) / float64(seenNs)
	if off < 0.005 {
		e.below05++
	}
	if off < 0.05 {
		e.below5++
	}
}

// ownSignature is a region used at one call site, after the two calls before it: the context of policy paper.
type ownSignature struct {
	region          mem.RegionID
	frames          [predictor.MaxFrames]uint64
	before, before2 ownCall
}

type ownCall struct {
	op     predictor.Op
	region mem.RegionID
}

type ownPeriod struct{ lastNs, shortestNs int64 }

// ownGrader grades periods of the uses that a predictor observes.
type ownGrader struct {
	predictor.Predictor
	recent  [2]ownCall // the later one first
	periods map[ownSignature]ownPeriod
	errors  ownErrors
}

func (g *ownGrader) Observe(u predictor.Use) {
	sig := ownSignature{u.Region, u.Frames, g.recent[0], g.recent[1]}
	g.recent = [2]ownCall{{u.Op, u.Region}, g.recent[0]}
	p, known := g.periods[sig]
	if seenNs := u.StartNs - p.lastNs; known && seenNs > 0 {
		if p.shortestNs > 0 {
			g.errors.add(p.shortestNs, seenNs)
		}
		if p.shortestNs == 0 || seenNs < p.shortestNs {
			p.shortestNs = seenNs
		}
	}
	p.lastNs = u.StartNs
	g.periods[sig] = p
	g.Predictor.Observe(u)
}

// ownGrading makes o grade the periods of policy paper; sum may be called
// after the replay.
func ownGrading(o *replay.Options) (sum func() ownErrors) {
	var mu sync.Mutex // protects graders: helpers are made by several goroutines
	var graders []*ownGrader
	o.NewHelper = func(policy string, o *replay.Options) (predictor.Predictor, schedule.SchedulerOptions, error) {
		p, so, err := replay.DefaultHelper(policy, o)
		if err != nil || policy != replay.Paper {
			return p, so, err
		}
		g := &ownGrader{Predictor: p, periods: map[ownSignature]ownPeriod{}}
		mu.Lock()
		defer mu.Unlock()
		graders = append(graders, g)
		return g, so, nil
	}
	return func() (all ownErrors) {
		for _, g := range graders {
			all.n += g.errors.n
			all.below05 += g.errors.below05
			all.below5 += g.errors.below5
		}
		return all
	}
}

func (e *ownErrors) cells() []string {
	if e.n == 0 {
		return []string{"-", "-"}
	}
	return []string{Percent(float64(e.below05) / float64(e.n)), Percent(float64(e.below5) / float64(e.n))}
}
