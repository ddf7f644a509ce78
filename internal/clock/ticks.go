package clock

// Ticks turns readings of a counter that another component takes, such as C
// code, into times of a clock. It belongs to one goroutine, except NsPerTick.
type Ticks struct {
	read  func() uint64
	nowNs func() int64
	first reading
	line  reading // a point of the line
	slope float64 // nanoseconds per tick
}

// NewTicks returns a Ticks for the counter that read returns, in nanoseconds of nowNs.
func NewTicks(read func() uint64, nowNs func() int64) *Ticks {
	t := &Ticks{read: read, nowNs: nowNs, slope: 1}
	t.first = readBoth(read, nowNs)
	t.line = t.first
	return t
}

// NsPerTick returns the mean rate since the Ticks was made. Any goroutine may ask.
func (t *Ticks) NsPerTick() float64 {
	now := readBoth(t.read, t.nowNs)
	return float64(now.ns-t.first.ns) / float64(max(now.ticks-t.first.ticks, 1))
}

// Ns converts one reading. The line is drawn anew through the first moment and
// the present one when that is twice as far away as the point before: the
// longer the base, the better the slope, and the fewer readings.
func (t *Ticks) Ns(at uint64) int64 {
	if int64(at-t.first.ticks) >= 2*int64(t.line.ticks-t.first.ticks) {
		t.line = readBoth(t.read, t.nowNs)
		if d := t.line.ticks - t.first.ticks; d > 0 {
			t.slope = float64(t.line.ns-t.first.ns) / float64(d)
		}
	}
	return t.line.ns + int64(float64(int64(at-t.line.ticks))*t.slope)
}
