package schedule

// A look at DQ costs a wake-up and may find nothing. What it can gain is memory: the regions that a
// finished use leaves registered can be released, for the rest of the silence, so much earlier. The
// bounds of a pacer follow from this.
const (
	// WakeupNs is the processor time of a wake-up: 5 us on bare metal, 10 to 20 us on a virtual machine.
	WakeupNs = 10_000 // 10 us
	// mostWakeupNs bounds one measurement of it: what was found may have taken the rest.
	mostWakeupNs = 200_000 // 200 us
	// looksShare is the most that looks take of a core that no rank needs.
	looksShare = 0.01
	// looksPart is the most that looks take of what the helper may take of the core of its rank.
	looksPart = 0.25
	// mostLooks is the number of looks that a pacer may do at once after a rest.
	mostLooks = 50
	// waitShare bounds how long a finished use waits for a look, on average: for 1/1024 of the usual silence
	// as long as there is credit for more looks, and waitGrowth times that without.
	waitShare  = 1024
	waitGrowth = 16
	// MinPollNs is the shortest pause between two looks.
	MinPollNs = 100_000 // 100 us
	// mostPollNs is the longest.
	mostPollNs = 1_000_000_000 // 1 s
	// maxLateNs bounds one measurement of lateness. Otherwise a thread that lost its
	// core for milliseconds would register that much too early the next time.
	maxLateNs = 1_000_000 // 1 ms
	// minSleepNs: a shorter sleep costs more than it saves.
	minSleepNs = 5_000 // 5 us
)

// Pacer decides how long the helper sleeps. Events don't wake the helper: that would take a system
// call on the communication path. So it sleeps until the Decider wants something, or until uses may have
// ended that wait for a look, whichever is first. How long silences last tells how long they would wait.
// Like Scheduler, a Pacer is pure: it reads no clock.
type Pacer struct {
	lastUseNs int64 // end of the latest use
	activeNs  int64 // when the program was last seen to communicate: lastUseNs, or later
	missedNs  int64 // when the latest use that was missed began: its event is still to come, if lastUseNs is before
	silences  silences
	credit    float64 // looks that may be done now; less than 0 after those that could not wait
	paidNs    int64   // credit was paid up to then
	looks     float64 // the most that they may take of a core
	wakeupNs  float64 // what one takes, moving
	longNs    int64
	short     lateness // of sleeps below longNs
	long      lateness
}

// lateness is how late sleeps end.
type lateness struct {
	meanNs int64 // moving
	devNs  int64 // moving mean of the distance from it
}

// NewPacer returns a Pacer for a helper that starts at nowNs. Sleeps of at least longNs can be ended, and end later
// than shorter ones.
func NewPacer(nowNs, longNs int64) Pacer {
	return Pacer{longNs: longNs, lastUseNs: nowNs, activeNs: nowNs, paidNs: nowNs, credit: mostLooks,
		looks: looksShare, wakeupNs: WakeupNs,
		short: lateness{meanNs: 50_000}, long: lateness{meanNs: 500_000}}
}

// SetShare tells what the helper may take of the core of its rank, as one of this many helpers there; 0 if it has a
// core to itself. A limit begins with nothing saved up.
func (p *Pacer) SetShare(share float64, helpers int) {
	p.looks = looksShare
	if share > 0 {
		p.looks = min(looksShare, looksPart*share/float64(max(helpers, 1)))
		p.credit = 0
	}
}

// Looked tells what processor time a look has taken, with the uses that it found. Where the rank's work empties
// the caches between two looks, it is several times WakeupNs.
func (p *Pacer) Looked(cpuNs int64) {
	p.wakeupNs += (float64(max(WakeupNs, min(cpuNs, mostWakeupNs))) - p.wakeupNs) / 16
}

// Used notes the end of a use.
func (p *Pacer) Used(endNs int64) {
	silenceNs := endNs - p.lastUseNs
	if silenceNs <= 0 {
		return
	}
	p.lastUseNs, p.activeNs = endNs, max(p.activeNs, endNs)
	p.silences.add(silenceNs)
}

// Missed notes that a use has begun at needNs of which the communication path told: 0 if it has not.
func (p *Pacer) Missed(needNs int64) { p.missedNs = max(p.missedNs, needNs) }

// PlanNs returns how long to sleep before looking at DQ again, if the Decider has nothing to be done before w.
func (p *Pacer) PlanNs(nowNs int64, w Waiting) (sleepNs int64) {
	leftNs := w.DueNs - nowNs
	leftNs -= p.marginNs(leftNs)
	if w.NoneHeld && !p.followsMiss() {
		return max(min(mostPollNs, leftNs), minSleepNs)
	}
	pauseNs := p.pauseNs(nowNs, w.ReviewNs)
	if leftNs < pauseNs {
		p.credit++ // not a look for its own sake
	}
	return max(min(pauseNs, leftNs), minSleepNs)
}

// followsMiss reports whether there is no silence, but a use under way whose event is still to come.
func (p *Pacer) followsMiss() bool { return p.missedNs > p.lastUseNs }

// RestNs returns how long to sleep if there is to be no look before untilNs, but what is due at w.DueNs is
// still to be registered.
func (p *Pacer) RestNs(nowNs int64, w Waiting, untilNs int64) int64 {
	leftNs := w.DueNs - nowNs
	return max(min(untilNs-nowNs, leftNs-p.marginNs(leftNs)), minSleepNs)
}

// pauseNs is how long to stay away from DQ if no registration is due.
func (p *Pacer) pauseNs(nowNs, reviewNs int64) int64 {
	perNs := p.looks / p.wakeupNs
	p.credit = min(mostLooks, p.credit+float64(nowNs-p.paidNs)*perNs) - 1
	p.paidNs = nowNs
	lacking := min(1-p.credit/mostLooks, 1)
	waitNs := p.silences.usualNs() / waitShare * (1 + (waitGrowth-1)*lacking*lacking)
	silentNs := float64(max(nowNs-p.activeNs, 1))
	pauseNs := min(p.silences.pauseNs(silentNs, waitNs), float64(reviewNs-nowNs))
	if p.followsMiss() {
		pauseNs = min(pauseNs, float64(nowNs-p.missedNs)/pollShare)
	}
	return int64(min(max(pauseNs, MinPollNs, -p.credit/perNs), mostPollNs))
}

// Near reports whether a registration that is due at dueNs should rather begin now: the rest of the
// time is no longer than the margins with which sleeps end, and those change from one sleep to the next.
func (p *Pacer) Near(nowNs, dueNs int64) bool {
	leftNs := dueNs - nowNs
	return leftNs <= 2*p.marginNs(leftNs)
}

// marginNs is how much earlier than a deadline a sleep of so long must be set to end. As with the
// retransmission timer of RFC 6298, a moving mean and deviation
// follow a machine that gets noisier.
func (p *Pacer) marginNs(sleepNs int64) int64 {
	l := p.lateness(sleepNs)
	return l.meanNs + 2*l.devNs
}

func (p *Pacer) lateness(sleepNs int64) *lateness {
	if sleepNs < p.longNs {
		return &p.short
	}
	return &p.long
}

// Slept reports when a sleep really ended. It ends early if the communication path had to register memory:
// then a use has begun, and the silence is over.
func (p *Pacer) Slept(fromNs, askedNs, nowNs int64) {
	if nowNs-fromNs < askedNs {
		p.activeNs = nowNs
		p.credit++ // for a look that is not for its own sake
		return
	}
	l := p.lateness(askedNs)
	d := min(nowNs-fromNs-askedNs, maxLateNs) - l.meanNs
	l.meanNs += d / 8
	l.devNs += (max(d, -d) - l.devNs) / 4
}
