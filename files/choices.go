package files

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"pinwheel/files/pipe"
)

// choices find the shape that is fastest on this machine, for transfers of each size: by what transfers of about that
// size took. Until some of them tell, it is the one that the costs of the paper suggest. It is safe for concurrent use.
type choices struct {
	// mu is a leaf.
	mu      sync.Mutex
	classes [65]class
	sent    map[sentRange]int
}

// candidates are what a transfer may be. None has more registered at a time than Sendfile.
var candidates = []pipe.Strategy{
	pipe.Static, pipe.Sendfile, pipe.Pipelined,
	{Name: "single", Shape: pipe.Shape{Source: pipe.Map, ChunkBytes: 6 << 20, Depth: 1}}, // 6 MiB
}

// Indexes of candidates.
const (
	byCopy = iota
	bySendfile
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
	// firstChoices transfers of a size are what the paper suggests. Then each of the others is tried, at every
	// tryEarly-th transfer until it was tried enoughTries times, and at every tryLate-th after that.
	firstChoices = 8
	tryEarly     = 2
	enoughTries  = 5
	tryLate      = 64
	// hopeless is how many times slower than the best a candidate is that is not tried again.
	hopeless = 2
)

// class is what is known of transfers of about one size.
type class struct {
	count int
	of    [4]record
}

// record is what is known of a candidate.
type record struct {
	tries int
	last  [9]float64 // ns for a byte, in turn
	ns    float64    // the median of these: what else the machine does delays some transfers much
}

// choose returns which candidate a transfer of n bytes should be, and whether note should hear of it. A range that was
// sent before is sent in the same way, whose registrations may be there still; copied twice, it is worth registering.
func (c *choices) choose(r sentRange, n, copyBelow int64) (k int, learns bool) {
	prior := bySendfile
	if n < copyBelow {
		prior = byCopy
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, again := c.sent[r]; again {
		if k == byCopy && n >= copyBelow {
			k = bySendfile
			c.sent[r] = k
		}
		return k, false
	}
	k = prior
	if n >= leastChoice {
		k = c.classes[bits.Len64(uint64(n))].choose(prior)
	}
	if c.sent == nil || len(c.sent) >= maxSent {
		c.sent = map[sentRange]int{}
	}
	c.sent[r] = k
	return k, n >= leastChoice
}

// choose returns the candidate that is best, or one that should be tried.
func (c *class) choose(prior int) int {
	best := prior
	for k := range candidates {
		if r := &c.of[k]; r.tries > 0 && (c.of[best].tries == 0 || r.ns < c.of[best].ns) {
			best = k
		}
	}
	c.count++
	if c.count <= firstChoices {
		return prior
	}
	least := best
	for k := range candidates {
		r := &c.of[k]
		tried := r.tries >= enoughTries && r.ns > hopeless*c.of[best].ns
		if k != best && !tried && (least == best || r.tries < c.of[least].tries) {
			least = k
		}
	}
	every := tryLate
	if c.of[least].tries < enoughTries {
		every = tryEarly
	}
	if c.count%every == 0 {
		return least
	}
	return best
}

// note hears how long a transfer of n bytes took.
func (c *choices) note(k int, n int64, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.classes[bits.Len64(uint64(n))].of[k]
	r.last[r.tries%len(r.last)] = float64(took.Nanoseconds()) / float64(n)
	r.tries++
	known := r.last // a copy, to be sorted
	some := known[:min(r.tries, len(known))]
	slices.Sort(some)
	r.ns = some[len(some)/2]
}
