package files

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"pinwheel/comm/files/pipe"
)

// choices find the shape that is fastest on this machine, for transfers of each size: by what transfers of about that
// size took. Until some of them tell, it is the one that is likely to be best. What was sent before is known
// apart: its registrations are there, most likely. It is safe for concurrent use.
type choices struct {
	// mu is a leaf.
	mu           sync.Mutex
	first, again [65]class
	sent         map[sentRange]struct{}
}

// candidates are what a transfer may be.
var candidates = []pipe.Strategy{
	pipe.Static,
	{Name: "chunks", Shape: pipe.Auto.Shape, Adapts: true},
	{Name: "single", Shape: pipe.Shape{Source: pipe.Map, ChunkBytes: longRead, Depth: 1}},
}

// Indexes of candidates.
const (
	byCopy = iota
	byChunks
	bySingle
)

// sentRange is where a transfer began, in which version of which file.
type sentRange struct {
	stamp stamp
	from  int64
}

const (
	// leastChoice is the size in bytes below which there is no choice: to register takes longer than to copy.
	leastChoice = 32 << 10
	// maxSent ranges are known. After that, all are forgotten.
	maxSent = 4096
	// firstChoices transfers of a size are what is likely to be best. Then one of the others is tried, and the next of
	// them tryNext transfers later. One that was slower than the best is tried again after tryAgain transfers, then after
	// twice as many, up to tryLate, and one that was faster soon. One that takes twice as long as the best is tried again
	// after tryDear transfers at least, so that what all trials lose stays a few percent, and a slower one later still.
	firstChoices = 8
	tryNext      = 16
	trySoon      = 2
	tryAgain     = 48
	tryLate      = 128
	tryDear      = 150
	mostDear     = 20 // times tryDear is the longest pause
	// enoughTries are so many that a candidate may be the best by them.
	enoughTries = 3
)

// among returns the candidates for a transfer of n bytes, with what is likely to be the best of them first.
func among(n, copyBelow int64, again bool) []int {
	switch one := n <= pipe.Auto.Shape.ChunkBytes; {
	case n < leastChoice:
		return []int{byCopy}
	case n < copyBelow && one:
		return []int{byCopy, byChunks}
	case n < copyBelow:
		return []int{byCopy, byChunks, bySingle}
	case again: // copied twice, it is worth registering, and chunks of another size would be registered anew
		return []int{byChunks}
	case one:
		return []int{byChunks, byCopy}
	}
	return []int{byChunks, byCopy, bySingle}
}

// class is what is known of transfers of about one size.
type class struct {
	count  int
	of     [3]record // by candidate
	latest int       // candidate of the latest transfer
	trial  int       // candidate that is tried
	left   int       // transfers that are left of its trial
}

// record is what is known of a candidate.
type record struct {
	tries int
	last  [9]float64 // ns for a byte, in turn
	ns    float64    // the lower median of these: what else the machine does delays some much
	next  int        // transfer of its class at which it is tried; 0: due has not looked at it so far
	pause int        // transfers between two trials
}

// chosen is what a transfer of a range should be.
type chosen struct {
	candidate int
	class     *class // that is to hear how long it took; nil: nothing is to be learned
}

// known notes that a range is sent, and tells whether it was before.
func (c *choices) known(r sentRange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, before := c.sent[r]
	if c.sent == nil || len(c.sent) >= maxSent {
		c.sent = map[sentRange]struct{}{}
	}
	c.sent[r] = struct{}{}
	return before
}

// choose returns what a transfer of n bytes should be, by what is known of those of about its size. again says that
// what it sends was sent before, and stays registered.
func (c *choices) choose(n, copyBelow int64, again bool) chosen {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := among(n, copyBelow, again)
	if len(from) == 1 {
		return chosen{candidate: from[0]}
	}
	classes := &c.first
	if again {
		classes = &c.again
	}
	l := &classes[bits.Len64(uint64(n))]
	k, tells := l.choose(from)
	if !tells {
		l = nil
	}
	return chosen{k, l}
}

// choose returns the candidate that is best, or one that should be tried. tells is false if what the transfer takes
// says little of it: the first one after those of another candidate pays for what these have left, mappings that are
// removed beside it and caches of the processor.
func (c *class) choose(from []int) (k int, tells bool) {
	c.count++
	k = c.best(from)
	if c.left > 0 && slices.Contains(from, c.trial) {
		c.left--
		k = c.trial
	} else if t, due := c.due(from, k); due {
		r := &c.of[t]
		r.next = c.count + r.pause // if nobody hears how long it took
		c.trial, c.left = t, enoughTries
		k = t
	}
	tells = k == c.latest || c.count == 1
	c.latest = k
	return k, tells
}

// due returns a candidate that should be tried, if there is one.
func (c *class) due(from []int, best int) (int, bool) {
	if c.count <= firstChoices {
		return 0, false
	}
	for i, k := range from {
		r := &c.of[k]
		if r.next == 0 { // the first of them has been the best so far
			r.next, r.pause = c.count+[...]int{tryAgain, 0, tryNext}[i], tryNext
		}
		if k != best && c.count >= r.next {
			return k, true
		}
	}
	return 0, false
}

// best returns the candidate that is known to be best. The first is so until others have shown more.
func (c *class) best(from []int) int {
	best := from[0]
	for _, k := range from[1:] {
		if r := &c.of[k]; r.tries >= enoughTries && r.ns < c.of[best].ns {
			best = k
		}
	}
	return best
}

// note hears how long a transfer of n bytes took.
func (c *choices) note(h chosen, n int64, took time.Duration) {
	if h.class == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.class.note(h.candidate, float64(took.Nanoseconds())/float64(n))
}

func (c *class) note(candidate int, ns float64) {
	r := &c.of[candidate]
	r.last[r.tries%len(r.last)] = ns
	r.tries++
	known := r.last // a copy, to be sorted
	some := known[:min(r.tries, len(known))]
	slices.Sort(some)
	r.ns = some[(len(some)-1)/2]
	for i := range c.of {
		if o := &c.of[i]; i != candidate && o.tries > 0 && o.ns <= r.ns {
			dear := int(tryDear * min(r.ns/o.ns-1, mostDear))
			r.pause = max(min(max(2*r.pause, tryAgain), tryLate), dear)
			r.next = c.count + r.pause
			if c.trial == candidate && c.left < enoughTries-1 { // else it may have been an accident
				c.left = 0
			}
			return
		}
	}
	r.pause = trySoon
	r.next = c.count + r.pause
}
