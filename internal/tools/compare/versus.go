package compare

import "pinwheel/internal/measure"

// Beside is what a mode takes beside another one.
type Beside struct {
	Mode  Mode `json:"mode"`
	Other Mode `json:"other"`
	Versus
}

// Versus is what one mode takes beside another: ratios of runs of the same round. Memory is 1 and the difference of
// mean pinned memory, as a share of what the transport's cache pins: another mode may pin nothing.
type Versus struct {
	Memory measure.Estimate `json:"memory"`
	CPU    measure.Estimate `json:"cpu"`
	Time   measure.Estimate `json:"run"`
}

// beside judges by the rounds that have both modes; there is one.
func (rounds rounds) beside(a, b Mode) Beside {
	both := rounds.with(a).with(b)
	return Beside{a, b, Versus{
		Memory: both.of(func(r round) float64 {
			return 1 + ratio(r[a].AvgPinnedBytes-r[b].AvgPinnedBytes, r[Cache].AvgPinnedBytes)
		}),
		CPU:  both.of(func(r round) float64 { return ratio(r[a].CPUNs, r[b].CPUNs) }),
		Time: both.of(func(r round) float64 { return ratio(r[a].Seconds, r[b].Seconds) }),
	}}
}

// change is what the interval of a ratio says.
type change int

const (
	unknown change = iota // nothing: more and less are both in it
	equal                 // no difference that matters
	less
	more
)

// Differences up to these do not matter, whichever way they go.
const (
	memoryMargin = 0.05 // of what the transport's cache pins
	timeMargin   = 0.01
)

// changeOf judges the estimate of a ratio.
func changeOf(e measure.Estimate, margin float64) change {
	switch {
	case e.Coverage < measure.Confidence:
		return unknown
	case e.Low >= 1-margin && e.High <= 1+margin:
		return equal
	case e.High < 1:
		return less
	case e.Low > 1:
		return more
	}
	return unknown
}

// changes are those of memory, processor time and run time.
func (v Versus) changes() [3]change {
	return [...]change{changeOf(v.Memory, memoryMargin), changeOf(v.CPU, timeMargin), changeOf(v.Time, timeMargin)}
}

// quantities name them.
var quantities = [...]string{"pinned memory", "processor time", "run time"}

// relation is how one mode stands to another by all three.
type relation int

const (
	unsure relation = iota
	alike
	better // less of something, and more of nothing
	worse  // more of something, and less of nothing
	traded // less of something, and more of something else
)

// relation judges. What is unknown leaves it unsure, unless the rest is a trade by itself.
func (v Versus) relation() relation {
	var n [more + 1]int
	for _, c := range v.changes() {
		n[c]++
	}
	switch {
	case n[less] > 0 && n[more] > 0:
		return traded
	case n[unknown] > 0:
		return unsure
	case n[less] > 0:
		return better
	case n[more] > 0:
		return worse
	}
	return alike
}

// which lists the quantities that changed so, "" if there are none.
func (v Versus) which(c change) string {
	var names []string
	for i, got := range v.changes() {
		if got == c {
			names = append(names, quantities[i])
		}
	}
	return list(names)
}
