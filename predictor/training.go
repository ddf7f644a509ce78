package predictor

import (
	"cmp"
	"slices"
)

// A run can begin with what another run of the same job has learned. The other one may have run at
// another speed: what it took is scaled by what this run has shown so far. Its own first gap corrects
// the entry of a context; one that contradicts it ends the entry.

const (
	// trainedGaps is how many gaps of a context a TrainedEntry has.
	trainedGaps = 8
	// mostEntries bounds what a run that never repeats itself leaves.
	mostEntries = 8192
	// unknownSpeed is the scale of trained entries as long as this run has shown nothing.
	unknownSpeed = .8
	// littleSlack is for the contexts in which this run has changed its speed more than in others.
	littleSlack = .95
	// ownGaps is how many gaps of this run it takes to know better than an entry how short they are at the least.
	ownGaps = 3
	// mostChange is how much faster or slower than the entry its first own gap may be.
	mostChange = 3
	// trainedConfidence bounds the confidence in a trigger that this run has not seen.
	trainedConfidence = 2
)

// training are the trained entries of another run.
type training struct {
	entries map[signature]*TrainedEntry
	uses    map[bufferID]uint64 // of each buffer in the whole run
	speed   speed
}

func newTraining(l *Trained) (s training) {
	if l == nil {
		return s
	}
	s.entries = make(map[signature]*TrainedEntry, len(l.Entries))
	for i := range l.Entries {
		s.entries[signature(l.Entries[i].Context)] = &l.Entries[i]
	}
	s.uses = make(map[bufferID]uint64, len(l.Buffers))
	for _, r := range l.Buffers {
		s.uses[bufferID{r.Site, r.Ordinal}] = r.Uses
	}
	return s
}

// follower returns the follower of a new context: that of the level before, if that is new too and shares it.
func (s *training) follower(sig signature, level int, parent *follower) *follower {
	if parent != nil && !parent.trained && s.entries[sig] == nil {
		parent.level = int8(level)
		return parent
	}
	f := &follower{level: int8(level)}
	s.train(sig, f)
	return f
}

// train gives a new context the gaps of its entry, if there is one.
func (s *training) train(sig signature, f *follower) {
	l := s.entries[sig]
	if l == nil || len(l.GapsNs) == 0 {
		return
	}
	f.trained = true
	f.gaps.addScaled(l.GapsNs, s.speed.least())
	if l.Confidence > 0 {
		f.trigger = &trigger{steps: uint64(l.Steps), sig: l.Trigger,
			confidence: min(int(l.Confidence), trainedConfidence)}
		f.trigger.gaps.addScaled(l.AfterNs, s.speed.least())
	}
}

// correct takes the first own gap of a context that has an entry.
func (s *training) correct(sig signature, f *follower, ownNs int64) {
	f.trained = false
	l := s.entries[sig]
	scale := float64(max(ownNs, 1)) / float64(max(median(l.GapsNs), 1))
	s.speed.add(scale)
	f.gaps = gaps{}
	if scale > mostChange || scale < 1./mostChange {
		f.trigger = nil
		return
	}
	f.gaps.takeTrained(l.GapsNs, scale)
	if f.trigger != nil {
		f.trigger.gaps = gaps{}
		f.trigger.gaps.takeTrained(l.AfterNs, scale)
	}
}

// isLast reports whether a buffer that was used so often is used no more.
func (s *training) isLast(r bufferID, uses uint64) bool {
	total, known := s.uses[r]
	if known && uses > total {
		s.uses = nil // this run is another one
		return false
	}
	return known && uses == total
}

// speed is how much longer gaps of this run are than those of trained entries.
type speed struct {
	recent [8]float64
	n      int
}

func (s *speed) add(scale float64) {
	s.recent[s.n%len(s.recent)] = scale
	s.n++
}

// least returns the least scale that this run has shown of late.
func (s *speed) least() float64 {
	if s.n == 0 {
		return unknownSpeed
	}
	return max(littleSlack*slices.Min(s.recent[:min(s.n, len(s.recent))]), 1./mostChange)
}

// takeTrained adds gaps that another run took. Those that are shorter than all of this run are forgotten once that has
// some: the other run may have had more jitter, and the shortest gap decides how early a region is registered.
func (g *gaps) takeTrained(ns []int64, by float64) {
	g.addScaled(ns, by)
	g.unsure = ownGaps
}

// addScaled adds gaps that another run took.
func (g *gaps) addScaled(ns []int64, by float64) {
	for _, v := range ns[:min(len(ns), gapMemory)] {
		g.add(int64(float64(v) * by))
	}
}

func median(ns []int64) int64 {
	var g gaps
	g.addScaled(ns, 1)
	return g.median()
}

// Trained returns what was learned so far. It belongs to the caller.
func (p *Pinwheel) Trained() (l Trained) {
	for site, o := range p.bufferIDs.sites {
		for i, u := range o.used {
			l.Buffers = append(l.Buffers, Buffer{Site: site, Ordinal: uint32(i), Uses: u.uses, Bytes: uint64(u.bytes)})
		}
	}
	for _, table := range []map[signature]*follower{p.contexts.present, p.contexts.old} {
		for sig, f := range table {
			if sig&wholeStack == 0 || f.trigger == nil || f.trained || f.cold || len(l.Entries) >= mostEntries {
				continue
			}
			n := TrainedEntry{Context: uint64(sig), GapsNs: f.gaps.latest(trainedGaps)}
			if t := f.trigger; t.confidence > 0 {
				n.Steps, n.Trigger, n.Confidence = uint32(t.steps), t.sig, uint32(t.confidence)
				n.AfterNs = t.gaps.latest(trainedGaps)
			}
			l.Entries = append(l.Entries, n)
		}
	}
	slices.SortFunc(l.Buffers, func(a, b Buffer) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	slices.SortFunc(l.Entries, func(a, b TrainedEntry) int { return cmp.Compare(a.Context, b.Context) })
	l.Entries = slices.CompactFunc(l.Entries, func(a, b TrainedEntry) bool { return a.Context == b.Context })
	return l
}
