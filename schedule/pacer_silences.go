package schedule

import (
	"iter"
	"math"
	"math/bits"
)

// silences is a histogram of how long a program was silent between the ends of successive uses. It
// tells how long a use that ends a silence would wait for a look, on average. Older silences count
// less and less.
type silences struct {
	bins   [silenceBins]silenceBin
	some   [silenceBins / 64]uint64 // a bit for each bin: it has some
	weight float64                  // of the next silence

	weightedNs, weightedNs2 float64 // sums of the lengths, and of their squares
}

// silenceBin has the silences of about the same length. They end at any time from the shortest to the longest.
type silenceBin struct {
	weight     float64 // together
	shortestNs float64
	longestNs  float64
}

// left returns the silences of this bin that may still end when one has lasted for silentNs: their weight, and the
// earliest and latest end.
func (b *silenceBin) left(silentNs float64) (weight, fromNs, toNs float64) {
	if b.weight == 0 || b.longestNs <= silentNs {
		return 0, 0, 0
	}
	fromNs = max(b.shortestNs, silentNs)
	if fromNs == b.shortestNs {
		return b.weight, fromNs, b.longestNs
	}
	return b.weight * (b.longestNs - fromNs) / (b.longestNs - b.shortestNs), fromNs, b.longestNs
}

const (
	silenceBins = 512  // 16 for each power of two, of which the first ends at 1 us
	silenceAge  = 256. // number of silences after which one counts e times less
	mostWeight  = 1e9  // then all weights are scaled down
)

// silenceBinOf returns the bin of a length: 16 for each power of two, evenly spaced between them.
func silenceBinOf(ns int64) int {
	us := uint64(ns) >> 6 // sixteenths of a microsecond, about
	power := bits.Len64(us)
	if power < 5 {
		return 0
	}
	return min(16*(power-5)+int(us>>(power-5)&15)+1, silenceBins-1)
}

// add notes a silence of more than 0 ns.
func (s *silences) add(ns int64) {
	if s.weight = max(s.weight*(1+1/silenceAge), 1); s.weight > mostWeight {
		s.scale(1 / s.weight)
	}
	length := float64(ns)
	bin := silenceBinOf(ns)
	b := &s.bins[bin]
	if b.weight == 0 {
		b.shortestNs = length
		s.some[bin/64] |= 1 << (bin % 64)
	}
	b.weight += s.weight
	b.shortestNs = min(b.shortestNs, length)
	b.longestNs = max(b.longestNs, length)
	s.weightedNs += s.weight * length
	s.weightedNs2 += s.weight * length * length
}

// from iterates over the bins that have silences, from one bin on. A program has few of them.
func (s *silences) from(first int) iter.Seq[*silenceBin] {
	return func(yield func(*silenceBin) bool) {
		for i := s.next(first); i < silenceBins; i = s.next(i + 1) {
			if !yield(&s.bins[i]) {
				return
			}
		}
	}
}

// next returns the first bin from i on that has silences, silenceBins if there is none.
func (s *silences) next(i int) int {
	if i >= silenceBins {
		return silenceBins
	}
	word := i / 64
	rest := s.some[word] >> (i % 64) << (i % 64)
	for rest == 0 {
		if word++; word == len(s.some) {
			return silenceBins
		}
		rest = s.some[word]
	}
	return 64*word + bits.TrailingZeros64(rest)
}

func (s *silences) scale(by float64) {
	for i := range s.bins {
		s.bins[i].weight *= by
	}
	s.weight, s.weightedNs, s.weightedNs2 = s.weight*by, s.weightedNs*by, s.weightedNs2*by
}

// usualNs is the mean length, weighted by length: of the silence that a random moment lies in.
func (s *silences) usualNs() float64 {
	if s.weightedNs == 0 {
		return 0
	}
	return s.weightedNs2 / s.weightedNs
}

// pollShare makes the pauses grow with a silence that lasts longer than any one before: they are 1/4 of
// what it is longer.
const pollShare = 4

// pauseNs returns the longest pause, in a silence that has lasted for silentNs, after which the use that
// ends it would have waited for waitNs on average.
func (s *silences) pauseNs(silentNs, waitNs float64) float64 {
	first := silenceBinOf(int64(silentNs))
	var longer float64
	for b := range s.from(first) {
		weight, _, _ := b.left(silentNs)
		longer += weight
	}
	if longer == 0 {
		return max((silentNs-s.longestNs(silentNs))/pollShare, waitNs)
	}
	var ended float64 // share of the silences that would be over
	atNs := silentNs
	for b := range s.from(first) {
		weight, fromNs, toNs := b.left(silentNs)
		if weight == 0 {
			continue
		}
		stepNs := ended * (fromNs - atNs) // that uses would wait more, on average
		if stepNs >= waitNs {
			break
		}
		waitNs -= stepNs
		atNs = fromNs
		share, lengthNs := weight/longer, toNs-fromNs
		if stepNs = (ended + share/2) * lengthNs; stepNs >= waitNs {
			// Of the silences of the bin, share*x/lengthNs are over after x, and have waited for x/2.
			perNs := share / lengthNs
			return atNs + 2*waitNs/(ended+math.Sqrt(ended*ended+2*perNs*waitNs)) - silentNs
		}
		waitNs -= stepNs
		atNs = toNs
		ended += share
	}
	return atNs + waitNs/ended - silentNs
}

// longestNs returns the longest silence that was not longer than silentNs, 0 if there was none.
func (s *silences) longestNs(silentNs float64) float64 {
	for i := silenceBinOf(int64(silentNs)); i >= 0; i-- {
		if ns := s.bins[i].longestNs; ns > 0 && ns <= silentNs {
			return ns
		}
	}
	return 0
}
