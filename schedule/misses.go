package schedule

import "pinwheel/mem"

// Misses are those of which the Decider has not heard so far: the latest of them. A Loop tells of them when the helper is awake and not behind; a Decider leaves out
// what it knows from the event of the use by then. The zero value has none.
type Misses struct {
	latest [mostMisses]Miss // a ring
	n      int              // so far
}

// mostMisses is how many are kept while the helper does something else. One is enough for an exchange.
const mostMisses = 64

// Miss is a use that did not find its region registered, and had to register it, or to wait for that.
type Miss struct {
	Region    mem.RegionID
	NeedNs    int64 // when it began
	StalledNs int64 // how long it took from then until the region was registered; 0 if that is not known
}

// Add adds one.
func (m *Misses) Add(one Miss) {
	m.latest[m.n%mostMisses] = one
	m.n++
}

// Tell tells d of all of them, and forgets them. It returns when the last of the needs began; 0 if there is none.
func (m *Misses) Tell(d Decider, nowNs int64) (lastNs int64) {
	for i := max(0, m.n-mostMisses); i < m.n; i++ {
		one := m.latest[i%mostMisses]
		d.Missed(one, nowNs)
		lastNs = max(lastNs, one.NeedNs)
	}
	m.n = 0
	return lastNs
}
