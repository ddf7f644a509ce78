package schedule

import (
	"math"

	"pinwheel/mem"
)

// The price of a release is what it saves for its cost: bytes times the time for which they are not
// registered, per nanosecond of processor time. This is also how many bytes a core would save,
// on average, that did nothing else; so prices are in bytes per core.

// leastPrice is what a release must save to be worth its processor time on a core that has other
// work: 256 MiB per core, or 2.6 MiB for one per cent of it. Nodes have some 4 GiB
// for each core. A saving below a sixteenth of the memory that belongs to the time that it
// takes is not noticed on any node.
const leastPrice = 256 << 20

// priceOf returns what it is worth to deregister so many pages for savedNs at the cost of costNs.
func priceOf(pages uint64, savedNs, costNs int64) float64 {
	return float64(pages*mem.PageSize) * float64(max(savedNs, 0)) / float64(max(costNs, 1))
}

const (
	// priceSteps is the number of steps of prices for each doubling.
	priceSteps = 4
	// priceOctaves bounds what is told apart: from leastPrice up to 64 Ti times as much.
	priceOctaves = 46
)

// prices is the cost of the releases that were offered lately, by their price: each offer counts when
// its region may be released at first after a use, and fades with the window of the Budget. So for a
// program that repeats itself it tells what can be had at which price, in a typical window.
type prices struct {
	costNs [priceSteps * priceOctaves]float64
}

// step returns the index of a price. A step is a quarter of an octave of the logarithm's piecewise linear
// approximation, which is the same on every machine.
func (p *prices) step(price float64) int {
	fraction, octave := math.Frexp(price / leastPrice) // fraction is in [1/2, 1)
	step := (octave-1)*priceSteps + int((2*fraction-1)*priceSteps)
	return max(0, min(step, len(p.costNs)-1))
}

// add notes an offer.
func (p *prices) add(price float64, costNs int64) { p.costNs[p.step(price)] += float64(costNs) }

// betterNs returns the cost of the offers with a higher price.
func (p *prices) betterNs(price float64) (ns float64) {
	for _, costNs := range p.costNs[p.step(price)+1:] {
		ns += costNs
	}
	return ns
}

// fade is called once for each bin of the Budget.
func (p *prices) fade() {
	for i := range p.costNs {
		p.costNs[i] -= p.costNs[i] * binNs / budgetWindowNs
	}
}
