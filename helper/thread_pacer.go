package helper

// The bounds of a pacer. A wake-up costs about 15 us of processor time on a
// virtual machine and 5 us on bare metal.
const (
	// minPollNs is how long the helper stays away from DQ while events flow.
	minPollNs = 50_000 // 50 us
	// pollShare makes the pauses grow with the silence, up to maxPollNs: an event
	// that ends a silence waits at most 1/4 as long as the silence lasted.
	pollShare = 4
	maxPollNs = 5_000_000 // 5 ms
	// silentShare lets the pauses grow further, up to mostPollNs, in a silence of which
	// they are 1/16: under emulation 200 wake-ups a second of four helpers took
	// 6 % of two processors that the ranks needed. A predicted event never waits that
	// long, because its registration has ended the silence. mostPollNs also bounds
	// the delay of Close.
	silentShare = 16
	mostPollNs  = 100_000_000 // 100 ms
	// approachShare makes a sleep towards a deadline end 1/8 of the way before it:
	// the longer a processor has slept, the later it wakes (15 us after 50 us, 45 us
	// after 5 ms on a virtual machine). So the last sleep is a short one.
	approachShare = 8
	// spinShare bounds spinning to 1/16 of the time that has passed. maxSpinNs
	// bounds the budget that is saved for a burst of deadlines.
	spinShare = 16
	maxSpinNs = 2_000_000 // 2 ms
	// maxLateNs bounds one measurement of lateness. Otherwise a thread that lost its
	// core for milliseconds would spin as long next time.
	maxLateNs = 500_000 // 500 us
	// minSleepNs: a shorter sleep costs more than spinning it out.
	minSleepNs = 5_000 // 5 us
)

// pacer decides how the helper waits: how long it sleeps and when it spins
// instead. It trades the helper's processor time for precise wake-ups and for
// a short delay of events. Events don't wake the helper: that would take a system
// call on the communication path. Like Scheduler, a pacer is pure; the Thread drives it.
type pacer struct {
	activeNs int64 // the last event or action
	budgetNs int64 // what may still be spun
	spunNs   int64 // what was spun, in all
	planNs   int64 // the last plan
	spinning bool  // the last plan was to spin
	lateNs   int64 // moving mean of how late sleeps end
	devNs    int64 // moving mean of the distance from it
}

func newPacer(nowNs int64) pacer {
	return pacer{activeNs: nowNs, planNs: nowNs, budgetNs: maxSpinNs, lateNs: 50_000}
}

// active notes that there was an event or an action.
func (p *pacer) active(nowNs int64) {
	p.activeNs = nowNs
	p.spinning = false
}

// plan returns how long to sleep before looking at DQ again with a deadline at
// untilNs; 0 means to spin, that is to look again at once.
func (p *pacer) plan(nowNs, untilNs int64) (sleepNs int64) {
	elapsedNs := nowNs - p.planNs
	p.planNs = nowNs
	p.budgetNs = min(p.budgetNs+elapsedNs/spinShare, maxSpinNs)
	if p.spinning {
		p.spunNs += elapsedNs
		p.budgetNs -= elapsedNs
	}

	silenceNs := nowNs - p.activeNs
	pollNs := min(max(silenceNs/pollShare, minPollNs), max(maxPollNs, min(silenceNs/silentShare, mostPollNs)))
	leftNs := untilNs - nowNs
	sleepNs = min(leftNs-max(p.marginNs(), leftNs/approachShare), pollNs)
	p.spinning = sleepNs < minSleepNs && p.budgetNs > 0
	if p.spinning {
		return 0
	}
	if sleepNs < minSleepNs { // without a budget to spin, rather wake late
		sleepNs = min(max(leftNs, minSleepNs), pollNs)
	}
	return sleepNs
}

// marginNs is how much earlier than a deadline a sleep must be set to end.
// As with the retransmission timer of RFC 6298, a moving mean and deviation
// follow a machine that gets noisier.
func (p *pacer) marginNs() int64 { return p.lateNs + 2*p.devNs }

// slept reports how long a sleep really took. An early end says nothing.
func (p *pacer) slept(askedNs, tookNs int64) {
	if tookNs < askedNs {
		return
	}
	d := min(tookNs-askedNs, maxLateNs) - p.lateNs
	p.lateNs += d / 8
	p.devNs += (max(d, -d) - p.devNs) / 4
}
