package predictor

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"pinwheel/mem"
)

// Counts say how many predictions were followed by a need, and how close they were. The error of a
// prediction is the distance of Prediction.ExpectedNs from the need, relative to the interval between the
// region's previous need and this one.
type Counts struct {
	N       int64 // predictions that a need followed
	Below05 int64 // of these, with an error below 0.5 %
	Below5  int64 // and below 5 %
}

func (c *Counts) add(e float64) {
	c.N++
	if e < 0.005 {
		c.Below05++
	}
	if e < 0.05 {
		c.Below5++
	}
}

// Accuracy is how well predictions matched the needs that followed.
type Accuracy struct {
	Counts
	Bins [AccuracyBins]int64 // predictions by their error; see AccuracyBinUpper
}

// The bins of an Accuracy have equal ratio, ten in a decade, from 1e-6 to 100; the
// first also counts everything below, the last everything above.
const (
	AccuracyBins     = 81
	leastErrorDecade = -6
	binsADecade      = 10
)

// AccuracyBinUpper returns the upper end of a bin, as a share of the interval.
func AccuracyBinUpper(bin int) float64 {
	return math.Pow(10, leastErrorDecade+float64(bin)/binsADecade)
}

func (a *Accuracy) add(e float64) {
	a.Counts.add(e)
	bin := 0
	if e > 0 {
		bin = int(math.Ceil((math.Log10(e) - leastErrorDecade) * binsADecade))
	}
	a.Bins[min(max(bin, 0), AccuracyBins-1)]++
}

// CallSite is a kind of call at one place in the program.
type CallSite struct {
	Op     Op
	Frames [MaxFrames]uint64
}

// SiteCounts are the uses at one call site and their predictions.
type SiteCounts struct {
	CallSite
	Uses  int64
	Bytes uint64 // used in all
	Counts
}

// Scored is a Predictor whose predictions are compared with the needs that
// follow, in all and by call site. Like every Predictor it belongs to one
// helper, but Accuracy and Sites may be called at any time by anyone.
type Scored struct {
	Predictor
	regions map[mem.RegionID]*scoredRegion

	mu       sync.Mutex // protects all below; held by the helper for an addition
	accuracy Accuracy
	sites    map[CallSite]*SiteCounts
}

// scoredRegion is what a Scored knows of a region.
type scoredRegion struct {
	forecasts  [2]forecast // the last two since its last use, the later one first
	used       bool
	lastNeedNs int64
	site       *SiteCounts // of its last use, if that is counted
}

// forecast is a prediction and when it was made.
type forecast struct{ madeNs, expectedNs int64 }

// maxScoredSites bounds the memory of a program whose call sites never
// repeat; further ones count in the total only.
const maxScoredSites = 4096

// NewScored scores the predictions of p.
func NewScored(p Predictor) *Scored {
	return &Scored{
		Predictor: p,
		regions:   make(map[mem.RegionID]*scoredRegion),
		sites:     make(map[CallSite]*SiteCounts),
	}
}

// Observe implements Predictor.
func (s *Scored) Observe(u Use) {
	var used *scoredRegion
	if u.Known != nil {
		used = u.Known.scored
	}
	if used == nil {
		used = s.region(u.Region)
		if u.Known != nil {
			u.Known.scored = used
		}
	}
	s.count(used, &u)
	used.used, used.lastNeedNs, used.forecasts = true, u.StartNs, [2]forecast{}
	s.Predictor.Observe(u)
	for _, id := range s.Predictor.Changed() {
		p, ok := s.Predictor.Next(id, u.EndNs)
		if !ok {
			continue
		}
		r := used
		if id != u.Region {
			r = s.region(id)
		}
		r.forecasts = [2]forecast{{u.EndNs, p.ExpectedNs}, r.forecasts[0]}
	}
}

func (s *Scored) region(id mem.RegionID) *scoredRegion {
	r := s.regions[id]
	if r == nil {
		r = &scoredRegion{}
		s.regions[id] = r
	}
	return r
}

// count adds a use and the error of its prediction, if there was one.
func (s *Scored) count(r *scoredRegion, u *Use) {
	e, predicted := r.error(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	if predicted {
		s.accuracy.add(e)
	}
	site := r.site
	if site == nil || site.Op != u.Op || site.Frames != u.Frames {
		site = s.site(CallSite{u.Op, u.Frames})
		r.site = site
	}
	if site == nil {
		return
	}
	site.Uses++
	site.Bytes += u.Range.Len()
	if predicted {
		site.add(e)
	}
}

// site returns the counts of a call site, nil if there are too many. It is called with mu.
func (s *Scored) site(key CallSite) *SiteCounts {
	site := s.sites[key]
	if site == nil && len(s.sites) < maxScoredSites {
		site = &SiteCounts{CallSite: key}
		s.sites[key] = site
	}
	return site
}

// error returns the error of the latest prediction made before u began. A later
// use that completed while u went on may have made another one since.
func (r *scoredRegion) error(u *Use) (e float64, ok bool) {
	if !r.used || u.StartNs <= r.lastNeedNs {
		return 0, false
	}
	for _, f := range r.forecasts {
		if f.expectedNs != 0 && f.madeNs <= u.StartNs {
			return math.Abs(float64(f.expectedNs-u.StartNs)) / float64(u.StartNs-r.lastNeedNs), true
		}
	}
	return 0, false
}

// Forget implements Predictor. What was counted stays.
func (s *Scored) Forget(id mem.RegionID) {
	s.Predictor.Forget(id)
	delete(s.regions, id)
}

// Accuracy returns the accuracy of all predictions so far.
func (s *Scored) Accuracy() Accuracy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accuracy
}

// Sites returns up to n call sites, those with the most bytes first.
func (s *Scored) Sites(n int) []SiteCounts {
	s.mu.Lock()
	all := make([]SiteCounts, 0, len(s.sites))
	for _, site := range s.sites {
		all = append(all, *site)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b SiteCounts) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Op, b.Op), slices.Compare(a.Frames[:], b.Frames[:]))
	})
	return all[:min(n, len(all))]
}
