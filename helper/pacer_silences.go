package helper

import "math/bits"

// silences is a histogram of how long a program was silent between the ends of successive uses. It
// tells how long a use that ends a silence would wait for a look, on average. Older silences count
// less and less.
type silences struct {
	bins   [silenceBins]silenceBin
	weight float64 // of the next silence

	weightedNs, weightedNs2 float64 // sums of the lengths, and of their squares
}

// silenceBin has the silences of about the same length.
type silenceBin struct {
	weight     float64 // together
	weightedNs float64 // sum of their lengths
	longestNs  float64
}

// endNs is when silences of this bin end, as one knows that has lasted for silentNs: after their mean, and
// then after the longest. It returns false if they are over.
func (b *silenceBin) endNs(silentNs float64) (ns float64, ok bool) {
	if b.weightedNs > silentNs*b.weight {
		return b.weightedNs / b.weight, true
	}
	return b.longestNs, b.longestNs > silentNs
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
	b := &s.bins[silenceBinOf(ns)]
	b.weight += s.weight
	b.weightedNs += s.weight * length
	b.longestNs = max(b.longestNs, length)
	s.weightedNs += s.weight * length
	s.weightedNs2 += s.weight * length * length
}

func (s *silences) scale(by float64) {
	for i := range s.bins {
		s.bins[i].weight *= by
		s.bins[i].weightedNs *= by
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

const (
	// rare is the share of all silences below which those that are longer count as never seen.
	rare = 1e-4
	// pollShare makes the pauses grow with a silence that lasts longer than any one before: they are 1/4 of
	// what it is longer.
	pollShare = 4
)

// pauseNs returns the longest pause, in a silence that has lasted for silentNs, after which the use that
// ends it would have waited for waitNs on average.
func (s *silences) pauseNs(silentNs, waitNs float64) float64 {
	first := silenceBinOf(int64(silentNs))
	var longer float64
	for i := first; i < silenceBins; i++ {
		if b := &s.bins[i]; b.weight > 0 {
			if _, ok := b.endNs(silentNs); ok {
				longer += b.weight
			}
		}
	}
	if longer <= rare*s.weight {
		return max((silentNs-s.longestNs(silentNs))/pollShare, waitNs)
	}
	var ended float64 // share of the silences that would be over
	atNs := silentNs
	for i := first; i < silenceBins; i++ {
		b := &s.bins[i]
		endNs, ok := b.endNs(silentNs)
		if !ok {
			continue
		}
		stepNs := ended * (endNs - atNs) // that uses would wait more, on average
		if stepNs >= waitNs {
			break
		}
		waitNs -= stepNs
		atNs = endNs
		ended += b.weight / longer
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
