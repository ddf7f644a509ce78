package predictor

import (
	"cmp"
	"math"
	"slices"

	"pinwheel/mem"
)

// Grade is how well predictions matched the needs that followed. The error of
// a prediction is the distance of Prediction.ExpectedNs from the need,
// relative to the interval between the region's previous need and this one.
type Grade struct {
	N       int64            // predictions that a need followed
	Below05 int64            // of these, with an error below 0.5 %
	Below5  int64            // and below 5 %
	Bins    [GradeBins]int64 // by the error; see GradeBinUpper
}

// The bins of a Grade have equal ratio, ten in a decade, from 1e-6 to 100; the
// first also counts everything below, the last everything above.
const (
	GradeBins        = 81
	gradeLeastDecade = -6
	gradeBinsADecade = 10
)

// GradeBinUpper returns the upper end of a bin, as a share of the interval.
func GradeBinUpper(bin int) float64 {
	return math.Pow(10, gradeLeastDecade+float64(bin)/gradeBinsADecade)
}

func (g *Grade) add(e float64) {
	g.N++
	if e < 0.005 {
		g.Below05++
	}
	if e < 0.05 {
		g.Below5++
	}
	bin := 0
	if e > 0 {
		bin = int(math.Ceil((math.Log10(e) - gradeLeastDecade) * gradeBinsADecade))
	}
	g.Bins[min(max(bin, 0), GradeBins-1)]++
}

// SiteGrade is the grade of one signature: a region used at one call site.
type SiteGrade struct {
	Region mem.RegionID
	Frames [MaxFrames]uint64
	Uses   int64
	Bytes  uint64 // used in all
	Grade
}

// Graded is a Predictor whose predictions are compared with what came, in all
// and by signature. Like every Predictor it belongs to one helper.
type Graded struct {
	Predictor
	all      Grade
	history  history
	sites    map[signature]*SiteGrade
	inForce  map[mem.RegionID][2]forecast // the last two, the later one first
	lastNeed map[mem.RegionID]int64
}

// forecast is a prediction and when it was made.
type forecast struct{ madeNs, expectedNs int64 }

// maxGradedSites bounds the memory of a program whose call sites never
// repeat; further ones count in the total only.
const maxGradedSites = 4096

// NewGraded grades the predictions of p.
func NewGraded(p Predictor) *Graded {
	return &Graded{
		Predictor: p,
		sites:     make(map[signature]*SiteGrade),
		inForce:   make(map[mem.RegionID][2]forecast),
		lastNeed:  make(map[mem.RegionID]int64),
	}
}

// Observe implements Predictor.
func (g *Graded) Observe(u Use) {
	sig := g.history.next(&u)[levelSite]
	site := g.sites[sig]
	if site == nil && len(g.sites) < maxGradedSites {
		site = &SiteGrade{Region: u.Region, Frames: u.Frames}
		g.sites[sig] = site
	}
	e, graded := g.error(&u)
	if graded {
		g.all.add(e)
	}
	if site != nil {
		site.Uses++
		site.Bytes += u.Range.Len()
		if graded {
			site.add(e)
		}
	}
	g.lastNeed[u.Region] = u.StartNs
	delete(g.inForce, u.Region)
	g.Predictor.Observe(u)
	for _, id := range g.Predictor.Changed() {
		if p, ok := g.Predictor.Next(id, u.EndNs); ok {
			g.inForce[id] = [2]forecast{{u.EndNs, p.ExpectedNs}, g.inForce[id][0]}
		}
	}
}

// error returns the error of the prediction that was in force when u began. A
// later use that completed while u went on may have made another one since.
func (g *Graded) error(u *Use) (e float64, ok bool) {
	previousNs, needed := g.lastNeed[u.Region]
	if !needed || u.StartNs <= previousNs {
		return 0, false
	}
	for _, f := range g.inForce[u.Region] {
		if f.expectedNs != 0 && f.madeNs <= u.StartNs {
			return math.Abs(float64(f.expectedNs-u.StartNs)) / float64(u.StartNs-previousNs), true
		}
	}
	return 0, false
}

// Forget implements Predictor. What was graded stays.
func (g *Graded) Forget(id mem.RegionID) {
	g.Predictor.Forget(id)
	delete(g.inForce, id)
	delete(g.lastNeed, id)
}

// Grade returns the grade of all predictions so far.
func (g *Graded) Grade() Grade { return g.all }

// Sites returns up to n signatures, those with the most bytes first.
func (g *Graded) Sites(n int) []SiteGrade {
	all := make([]SiteGrade, 0, len(g.sites))
	for _, s := range g.sites {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b SiteGrade) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Region, b.Region), slices.Compare(a.Frames[:], b.Frames[:]))
	})
	return all[:min(n, len(all))]
}
