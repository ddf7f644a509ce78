package vmmc

import "time"

// pace says how long the rounds of an automatic update area pause.
type pace struct{ now, least, most time.Duration }

// The pauses of an Interval of 0: idle areas cost less.
const (
	shortPause = time.Millisecond
	longPause  = 16 * time.Millisecond
)

func newPace(interval time.Duration) pace {
	if interval == 0 {
		return pace{shortPause, shortPause, longPause}
	}
	return pace{interval, interval, interval}
}

// next hears whether a round has found something, and tells whether the pause is another one now.
func (p *pace) next(found bool) (changed bool) {
	before := p.now
	if p.now = min(2*p.now, p.most); found {
		p.now = p.least
	}
	return p.now != before
}
