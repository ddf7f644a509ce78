package helper

// idleness is how long a region went unused, in time and in phases.
type idleness struct {
	ns     int64
	phases uint64
}

// longest is the longest idleness of the recent past: of between one and two
// memories full. A single pause of an hour is forgotten in the end.
type longest struct {
	now, before idleness
	n           int
}

// longestMemory is how many idle times are remembered at least.
const longestMemory = 64

func (l *longest) extend(i idleness) {
	if l.n++; l.n > longestMemory {
		l.now, l.before, l.n = idleness{}, l.now, 1
	}
	l.now.ns, l.now.phases = max(l.now.ns, i.ns), max(l.now.phases, i.phases)
}

func (l *longest) ns() int64      { return max(l.now.ns, l.before.ns) }
func (l *longest) phases() uint64 { return max(l.now.phases, l.before.phases) }
