package schedule

import "pinwheel/mem"

// Misses are the needs that communication has registered memory for, or waited for it, and of which the Decider has
// not heard so far: the latest of them. A Loop tells of them when the helper is awake and not behind; a Decider leaves out
// what it knows from the event of the use by then. The zero value has none.
type Misses struct {
	needs [mostMisses]miss // a ring
	n     int              // so far
}

// mostMisses is how many are kept while the helper does something else. One is enough for an exchange.
const mostMisses = 64

type miss struct {
	region mem.RegionID
	needNs int64
}

// Add adds a need of a region at needNs.
func (m *Misses) Add(id mem.RegionID, needNs int64) {
	m.needs[m.n%mostMisses] = miss{id, needNs}
	m.n++
}

// Tell tells d of all of them, and forgets them. It returns when the last of the needs began; 0 if there is none.
func (m *Misses) Tell(d Decider, nowNs int64) (lastNs int64) {
	for i := max(0, m.n-mostMisses); i < m.n; i++ {
		need := &m.needs[i%mostMisses]
		d.Missed(need.region, need.needNs, nowNs)
		lastNs = max(lastNs, need.needNs)
	}
	m.n = 0
	return lastNs
}
