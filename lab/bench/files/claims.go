package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pinwheel/comm/files"
	"pinwheel/comm/files/filesbench"
	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/report"
	"pinwheel/internal/measure"
)

// claims judges what was measured.
func (s *state) claims() (claims []measure.Claim) {
	claims = append(append(claims, s.secondPipe(),
		s.leads("pipelined to dynamic, beyond a chunk, cold file", pipe.Pipelined, pipe.Dynamic, 2*mib),
		s.leads("sendfile to pipelined, from 256 KiB, cold file", pipe.Sendfile, pipe.Pipelined, 256*kib)), s.deviceClaims()...)
	for _, of := range []struct{ figure, what string }{
		{allCold, "cold file"}, {allHot, "hot file"}, {wholeGets, "hot file through a server"},
	} {
		claims = append(claims, s.autoIsBest(of.figure, of.what))
	}
	claims = append(claims, s.bounded(), s.released(), s.nothingRegistered(atOnce), s.nothingRegistered(later))
	for _, by := range []string{files.ByRDMA, files.ByMemory, files.ByTLS} {
		claims = append(claims, s.manyClients(by)...)
	}
	return append(claims, filesbench.Claims(s.copies())...)
}

// atLeast claims that a ratio is large enough.
func atLeast(what string, want float64, e measure.Estimate, at string, err error) measure.Claim {
	return judged(measure.Claim{What: what, Relation: measure.AtLeast, Bound: want}, err, e.Median, e.Text("%.3f")+" at "+at)
}

// judged is a claim with its value, or with why there is none.
func judged(c measure.Claim, err error, value float64, said string) measure.Claim {
	if err != nil {
		c.Missing = err.Error()
		return c
	}
	c.Times, c.Said, c.Missing = value, said, ""
	return c
}

// faster is how many times the second of two is as fast as the first.
func faster(p []*point) float64 { return p[0].Seconds / p[1].Seconds }

func (s *state) secondPipe() measure.Claim {
	one, two := pipes+"/"+plural(1, "pipe"), pipes+"/"+plural(2, "pipe")
	x := slices.Max(append(s.sizesOf(one), 0))
	e, err := s.estimate(x, faster, one, two)
	return atLeast("pipelined, two pipes to one", 1.2, e, report.Size(x), err)
}

// leads claims what Figure 10 of the paper shows: that one strategy is as fast as another or faster, at every size from
// least on.
func (s *state) leads(what string, ahead, behind pipe.Strategy, least int64) measure.Claim {
	worst, at, err := measure.Estimate{Median: math.Inf(1)}, int64(0), errNotMeasured
	one, other := allCold+"/"+behind.Name, allCold+"/"+ahead.Name
	for _, x := range s.sizesOf(other) {
		if e, missing := s.estimate(x, faster, one, other); missing == nil && x >= least && e.Median < worst.Median {
			worst, at, err = e, x, nil
		}
	}
	return atLeast(what, 1, worst, report.Size(at), err)
}

// autoIsBest compares auto, at the size at which it is worst, with that of the others which is the fastest there. The
// fastest of four is so by luck in part, and so is the worst of many sizes: the fastest, measured for a second time,
// shows how much that is. Processor time depends less on what else the machine does, but counts what runs at the same
// time as if it did not.
func (s *state) autoIsBest(figure, what string) measure.Claim {
	auto := func(string) string { return figure + "/" + pipe.Auto.Name }
	worst, at := s.toTheBest(figure, seconds, auto)
	if at == 0 {
		return atLeast("auto to the best of the four, "+what, 0.95, worst, "", errNotMeasured)
	}
	c := atLeast("auto to the best of the four, "+what, 0.95, worst, report.Size(at), nil)
	if noise, at := s.toTheBest(figure, seconds, repeated); at > 0 {
		c.Said += fmt.Sprintf("; the best itself, measured again: %.3f at %s", noise.Median, report.Size(at))
	}
	if busy, at := s.toTheBest(figure, processorSeconds, auto); at > 0 && busy.Median > 0 {
		c.Said += fmt.Sprintf("; by processor time: %.3f at %s", busy.Median, report.Size(at))
	}
	return c
}

// toTheBest compares another row, at the size at which that is worst, with the best of the four at each size. It
// returns size 0 if nothing was measured.
func (s *state) toTheBest(
	figure string, of func(p []*point) float64, other func(best string) string,
) (worst measure.Estimate, at int64) {
	worst.Median = math.Inf(1)
	ratio := func(p []*point) float64 { return of(p[:1]) / of(p[1:]) }
	for _, x := range s.sizesOf(figure + "/" + pipe.Auto.Name) {
		best, least := "", math.Inf(1)
		for _, strategy := range pipe.Strategies() {
			r := figure + "/" + strategy.Name
			if strategy.Name == pipe.Auto.Name {
				continue
			}
			if e, err := s.estimate(x, of, r); err == nil && e.Median < least {
				best, least = r, e.Median
			}
		}
		if e, err := s.estimate(x, ratio, best, other(best)); err == nil && e.Median < worst.Median {
			worst, at = e, x
		}
	}
	return worst, at
}

func seconds(p []*point) float64          { return p[0].Seconds }
func processorSeconds(p []*point) float64 { return p[0].CPU }

// onDemand are the points of the rows that are to have no more registered than their shapes say.
func (s *state) onDemand() (all []point) {
	for _, l := range s.Lines {
		for _, figure := range []string{pages, pipes, sendfilePages, sendfilePipes, buffers, sendfileBufs} {
			if l.Row == figure || len(l.Row) > len(figure) && l.Row[:len(figure)+1] == figure+"/" {
				all = append(all, l.Points...)
			}
		}
	}
	return all
}

// bounded claims that no more is ever registered than the chunk times the depth.
func (s *state) bounded() measure.Claim {
	c := measure.Claim{What: "registered at a time, to chunk x depth", Relation: measure.AtMost, Bound: 1, Missing: measure.NotMeasured}
	all := s.onDemand()
	if len(all) == 0 {
		return c
	}
	most := 0.0
	for _, p := range all {
		most = max(most, float64(p.PeakBytes)/float64(p.MostBytes))
	}
	return judged(c, nil, most, fmt.Sprintf("%.3f at most", most))
}

// released claims that nothing is registered after a transfer.
func (s *state) released() measure.Claim {
	c := measure.Claim{What: "bytes that are registered after transfers by pipelined and sendfile", Relation: measure.AtMost, Missing: measure.NotMeasured}
	all := s.onDemand()
	if len(all) == 0 {
		return c
	}
	left := slices.MaxFunc(all, func(a, b point) int { return cmp.Compare(a.LeftBytes, b.LeftBytes) }).LeftBytes
	return judged(c, nil, float64(left), fmt.Sprint(left))
}

// nothingRegistered claims that the second get of a hot file waits for no registration.
func (s *state) nothingRegistered(when string) measure.Claim {
	c := measure.Claim{What: "registrations on the path of the second get of a file, " + when, Relation: measure.AtMost, Missing: measure.NotMeasured}
	first, again := s.points(secondGet+"/"+when, 1), s.points(secondGet+"/"+when, 2)
	if len(first) == 0 || len(again) == 0 {
		return c
	}
	was, is, none := int64(math.MaxInt64), int64(0), 0
	for i := range again {
		was, is = min(was, first[i].Registrations), max(is, again[i].Registrations)
		if again[i].Registrations == 0 {
			none++
		}
	}
	if was == 0 {
		c.Missing = "the first get waited for none either"
		return c
	}
	return judged(c, nil, float64(is), fmt.Sprintf("0 in %d of %d rounds, %d at most, of the first %d", none, len(again), is, was))
}

// Bounds of what many clients see.
const fairness = 1.1 // most to least bytes of a client

func (s *state) manyClients(by string) []measure.Claim {
	prefix := fmt.Sprintf("%d clients, %s: ", manyClients, by)
	most := func(what string, bound float64) measure.Claim {
		return measure.Claim{What: prefix + what, Relation: measure.AtMost, Bound: bound, Missing: measure.NotMeasured}
	}
	unfair, peak, errs := most("bytes of one to those of another", fairness), most("registered to the budget", 1), most("errors", 0)
	all := s.points(manyGets+"/"+by, manyClients)
	if len(all) == 0 {
		return []measure.Claim{unfair, peak, errs}
	}
	p := all[len(all)-1]
	ratio := float64(slices.Max(p.Clients)) / float64(max(slices.Min(p.Clients), 1))
	used := float64(p.PeakBytes) / float64(p.MostBytes)
	return []measure.Claim{
		judged(unfair, nil, ratio, fmt.Sprintf("%.3f at most", ratio)), judged(peak, nil, used, fmt.Sprintf("%.3f at most", used)),
		judged(errs, nil, float64(p.Errors), fmt.Sprint(p.Errors)),
	}
}

// copies are the results of the ways to copy files.
func (s *state) copies() (all []filesbench.Result) {
	for _, w := range filesbench.Ways() {
		var cpu, wall []float64
		var bytes int64
		missing := measure.NotMeasured
		for _, l := range s.Lines {
			if l.Row != copyRow(w) {
				continue
			}
			missing = cmp.Or(l.Failed, missing)
			for _, p := range l.Points {
				bytes, cpu, wall = p.X, append(cpu, p.CPU), append(wall, p.Seconds)
			}
		}
		if len(wall) == 0 {
			all = append(all, filesbench.Result{What: w.What, Way: w.Name, Missing: missing})
		} else {
			all = append(all, filesbench.Summary(w, bytes, cpu, wall))
		}
	}
	return all
}
