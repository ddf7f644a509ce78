package helper

import "pinwheel/internal/clock"

// A look at DQ costs a wake-up and may find nothing. What it can gain is memory: the regions that a
// finished use leaves registered can be released, for the rest of the silence, so much earlier. The
// bounds of a pacer follow from this.
const (
	// wakeupNs is the processor time of a wake-up: 5 us on bare metal, 10 to 20 us on a virtual machine.
	wakeupNs = 10_000 // 10 us
	// bytesPerCore says what memory is worth in processor time: nodes have some 4 GiB for each core,
	// so 4 GiB held for a time are worth a core for that time. With 40 MiB registered, a look is
	// worth its cost if it is 1 ms earlier than the next one.
	bytesPerCore = 4 << 30
	// minPollNs and maxPollNs bound the pause that follows from it. At maxPollNs looks take
	// a thousandth of a core.
	minPollNs = 50_000     // 50 us
	maxPollNs = 10_000_000 // 10 ms
	// silenceShare bounds how much of a silence a look saves at best: pauses are at least 1/32 of
	// the usual silence, and so long a use that ends a silence may wait.
	silenceShare = 32
	// pollShare makes the pauses grow with a silence that lasts longer than any one before: they
	// are 1/4 of it, up to mostPollNs.
	pollShare  = 4
	mostPollNs = 1_000_000_000 // 1 s
	// maxLateNs bounds one measurement of lateness. Otherwise a thread that lost its
	// core for milliseconds would register that much too early the next time.
	maxLateNs = 1_000_000 // 1 ms
	// minSleepNs: a shorter sleep costs more than it saves.
	minSleepNs = 5_000 // 5 us
)

// silencesKept is the number of silences that a pacer remembers.
const silencesKept = 32

// pacer decides how long the helper sleeps. Events don't wake the helper: that would take a system
// call on the communication path. So it sleeps until a registration is due, or until the next moment
// at which an event ever came after such a silence, whichever is first. Like Scheduler, a pacer is
// pure; the Thread drives it.
type pacer struct {
	lastNs   int64               // end of the latest use
	silences [silencesKept]int64 // between the ends of successive uses, a ring
	count    int                 // silences ever noted
	usualNs  int64               // mean silence, weighted by length: the one that most of the time belongs to
	short    lateness            // of sleeps below clock.LongNs
	long     lateness
}

// lateness is how late sleeps end.
type lateness struct {
	meanNs int64 // moving
	devNs  int64 // moving mean of the distance from it
}

func newPacer(nowNs int64) pacer {
	return pacer{lastNs: nowNs, short: lateness{meanNs: 50_000}, long: lateness{meanNs: 500_000}}
}

// used notes the end of a use.
func (p *pacer) used(endNs int64) {
	silenceNs := endNs - p.lastNs
	if silenceNs <= 0 {
		return
	}
	p.lastNs = endNs
	p.silences[p.count%silencesKept] = silenceNs
	p.count++
	var sum, squares float64
	for _, ns := range p.silences {
		sum += float64(ns)
		squares += float64(ns) * float64(ns)
	}
	p.usualNs = int64(squares / sum)
}

// plan returns how long to sleep before looking at DQ again, with a registration that is due at
// dueNs, and bytes registered that a look might help to release.
func (p *pacer) plan(nowNs, dueNs, bytes int64) (sleepNs int64) {
	leftNs := dueNs - nowNs
	return max(min(p.pauseNs(nowNs, bytes), leftNs-p.marginNs(leftNs)), minSleepNs)
}

// pauseNs is how long to stay away from DQ if nothing is due.
func (p *pacer) pauseNs(nowNs, bytes int64) int64 {
	if bytes <= 0 {
		return mostPollNs
	}
	leastNs := max(p.usualNs/silenceShare, min(max(wakeupNs*bytesPerCore/bytes, minPollNs), maxPollNs))
	silenceNs := max(nowNs-p.lastNs, 0)
	nextNs := int64(never)
	for _, ns := range p.silences {
		if ns > silenceNs {
			nextNs = min(nextNs, ns)
		}
	}
	if nextNs == never {
		return min(max(silenceNs/pollShare, leastNs), mostPollNs)
	}
	return min(nextNs-silenceNs+leastNs, mostPollNs)
}

// near reports whether a registration that is due at dueNs should rather begin now: the rest of the
// time is no longer than the margins with which sleeps end, and those change from one sleep to the next.
func (p *pacer) near(nowNs, dueNs int64) bool {
	leftNs := dueNs - nowNs
	return leftNs <= 2*p.marginNs(leftNs)
}

// marginNs is how much earlier than a deadline a sleep of so long must be set to end. As with the
// retransmission timer of RFC 6298, a moving mean and deviation
// follow a machine that gets noisier.
func (p *pacer) marginNs(sleepNs int64) int64 {
	l := p.lateness(sleepNs)
	return l.meanNs + 2*l.devNs
}

func (p *pacer) lateness(sleepNs int64) *lateness {
	if sleepNs < clock.LongNs {
		return &p.short
	}
	return &p.long
}

// slept reports how long a sleep really took. An early end says nothing.
func (p *pacer) slept(askedNs, tookNs int64) {
	if tookNs < askedNs {
		return
	}
	l := p.lateness(askedNs)
	d := min(tookNs-askedNs, maxLateNs) - l.meanNs
	l.meanNs += d / 8
	l.devNs += (max(d, -d) - l.devNs) / 4
}
