package schedule

import "pinwheel/verbs"

// Budget bounds the processor time of a helper that has no core of its own. Everything that the
// helper does counts: its looks at DQ and RQ, its wake-ups, and the registrations and
// deregistrations themselves. Over any 10 s the helper uses at most its share of a processor,
// and one registration. What such a registration overdraws is paid back before anything else.
//
// A Budget is part of a Scheduler, is pure like it, and belongs to the same driver: the driver
// reports what was spent and asks when to rest; the Scheduler asks what is worth releasing. With
// no share set there is no limit, and nothing is counted.
type Budget struct {
	share   float64 // of a processor; 0: no limit
	limitNs int64   // that share of budgetWindowNs

	bin     int64             // the present interval of binNs, counted from the zero of the clock
	spent   [budgetBins]int64 // in the latest intervals, a ring
	spentNs int64             // the sum of spent, never above limitNs
	debtNs  int64             // spent beyond the limit; counts as spent later, as soon as there is room

	// reservedNs is what it takes to register again what is due to be, and admittedNs is the
	// cost of the releases that were decided but not yet reported as done.
	reservedNs, admittedNs int64

	// Processor time of the operations. The estimates of a Scheduler are of elapsed time, which is
	// longer on a shared processor.
	register, deregister estimate
	itemNs               int64
	actionNs             int64 // of the operation that is about to be reported as done; 0: unknown

	offers  prices
	worth   worth
	counts  BudgetCounts
	sinceNs int64 // until when counts.LimitedNs counts
}

// BudgetCounts say what a Budget has kept a helper from, since its start.
type BudgetCounts struct {
	Unpaid   int64 // uses whose region stayed registered because the share was used up
	Unworthy int64 // uses whose region stayed registered because a release was not worth its processor time
	Parks    int64 // how often looking was not worth its processor time
	ParkedNs int64 // how long the helper did not look for that reason

	LimitedNs int64 // how long there was a limit
	SpentNs   int64 // processor time of the helper meanwhile
}

const (
	// budgetWindowNs is the time over which the share holds.
	budgetWindowNs = 10_000_000_000 // 10 s
	// binNs is the resolution of the window. One bin more than the window has makes the sum cover
	// any window, wherever it begins.
	binNs      = 100_000_000 // 100 ms
	budgetBins = budgetWindowNs/binNs + 1
	// spareShare is the part of the limit, as its reciprocal, that is kept for looks: a helper that spent
	// everything on releases could not follow when their regions are needed again. In return, looks
	// leave so much to the registrations that are due.
	spareShare = 32
	// carefulShare is the part of the limit, as its reciprocal, below which the share goes only to better and
	// better offers.
	carefulShare = 8
)

func newBudget(c verbs.Costs, itemNs int64) Budget {
	return Budget{register: newEstimate(c.Register), deregister: newEstimate(c.Deregister), itemNs: itemNs}
}

// SetShare sets the share of a processor that the helper may use from now on: from 0 to 1, where
// both 0 and 1 mean that there is no limit. A limit that begins holds as if the share had just been
// used up evenly, so nothing is saved up.
func (b *Budget) SetShare(share float64, nowNs int64) {
	if share >= 1 {
		share = 0
	}
	limited := b.limited()
	b.counts = b.Counts(nowNs)
	b.sinceNs = nowNs
	b.share, b.limitNs = share, int64(share*budgetWindowNs)
	if !limited {
		b.bin = nowNs / binNs
		b.spentNs, b.debtNs, b.actionNs = 0, 0, 0
		for i := range b.spent {
			b.spent[i] = b.limitNs / budgetBins
			b.spentNs += b.spent[i]
		}
		b.clear(b.bin)
		b.worth.restart(nowNs)
	}
}

// Share returns what SetShare has set, or 0 if there is no limit.
func (b *Budget) Share() float64 { return b.share }

// Counts returns the counters as they are now.
func (b *Budget) Counts(nowNs int64) BudgetCounts {
	c := b.counts
	if b.limited() {
		c.LimitedNs += max(0, nowNs-b.sinceNs)
	}
	return c
}

func (b *Budget) limited() bool { return b.share > 0 }

// Spend counts processor time that the helper has used.
func (b *Budget) Spend(cpuNs, nowNs int64) {
	if !b.limited() {
		return
	}
	b.advance(nowNs)
	b.counts.SpentNs += cpuNs
	b.worth.spentNs += cpuNs
	b.debtNs += cpuNs
	b.pay()
}

// Acted counts the processor time of an operation, whose Done comes next.
func (b *Budget) Acted(cpuNs, nowNs int64) {
	b.Spend(cpuNs, nowNs)
	b.actionNs = cpuNs
}

// done takes in that an operation has ended, and learns from what Acted was told of it if it was
// carried out.
func (b *Budget) done(k ActionKind, r *region, acted bool) {
	e := &b.register
	if k == Deregister {
		e = &b.deregister
		b.withdraw(r)
	}
	if acted {
		e.observe(r.pages, b.actionNs)
	}
	b.actionNs = 0
}

// Rest returns until when the helper must not look at DQ, or a time that has passed. It
// registers what is due meanwhile, as far as the share goes. pinnedBytes returns how much memory is
// registered now; it is called while the helper is parked.
func (b *Budget) Rest(nowNs int64, pinnedBytes func() int64) (untilNs int64) {
	if !b.limited() {
		return 0
	}
	b.advance(nowNs)
	if untilNs := b.worth.parkedUntil(nowNs, pinnedBytes); untilNs > nowNs {
		return untilNs
	}
	if b.freeNs() > min(b.reservedNs, b.limitNs/spareShare) {
		return 0
	}
	return b.nextBinNs()
}

// paysRegistration reports whether a registration that is due may begin now. Otherwise
// it may be asked for again at retryNs.
func (b *Budget) paysRegistration(nowNs int64) (retryNs int64, ok bool) {
	if !b.limited() {
		return 0, true
	}
	b.advance(nowNs)
	return b.nextBinNs(), b.freeNs() > 0
}

// freeNs is what may be spent now; negative after an overdraft.
func (b *Budget) freeNs() int64 { return b.limitNs - b.spentNs - b.debtNs }

func (b *Budget) nextBinNs() int64 { return (b.bin + 1) * binNs }

// advance forgets what was spent before the window.
func (b *Budget) advance(nowNs int64) {
	bin := nowNs / binNs
	for b.bin = max(b.bin, bin-budgetBins); b.bin < bin; {
		b.bin++
		b.clear(b.bin)
		b.pay()
		b.offers.fade()
	}
}

func (b *Budget) clear(bin int64) {
	at := &b.spent[bin%budgetBins]
	b.spentNs -= *at
	*at = 0
}

// pay moves debt into the present bin, as far as there is room.
func (b *Budget) pay() {
	ns := max(0, min(b.debtNs, b.limitNs-b.spentNs))
	b.debtNs -= ns
	b.spentNs += ns
	b.spent[b.bin%budgetBins] += ns
}

// observe notes, before a decision, what is deregistered and due to be registered again.
func (b *Budget) observe(due *registrationQueue, nowNs int64) {
	if !b.limited() {
		return
	}
	b.advance(nowNs)
	all := due.all
	b.reservedNs = b.register.meanSum(all.pages, all.n) + int64(all.n)*b.itemNs
	b.worth.observe(all.pages, nowNs)
	if b.worth.judge(nowNs) {
		b.counts.Parks++
	}
	b.counts.ParkedNs = b.worth.parkedNs
}

// admits decides whether a region may be deregistered to save its memory for savedNs. Otherwise there is no use in
// asking for it again before retryNs.
func (b *Budget) admits(r *region, savedNs, nowNs int64) (retryNs int64, ok bool) {
	if !b.limited() {
		return 0, true
	}
	b.advance(nowNs)
	b.withdraw(r)
	costNs := b.register.meanSum(r.pages, 1) + b.deregister.meanSum(r.pages, 1) + 2*b.itemNs
	price := priceOf(r.pages, savedNs, costNs)
	if price < leastPrice || nowNs < b.worth.untilNs {
		r.keep(unworthy)
		return nowNs, false
	}
	if !r.offered {
		r.offered = true
		b.offers.add(price, costNs)
	}
	spareNs := b.freeNs() - b.reservedNs - b.admittedNs - b.limitNs/spareShare
	// The share goes to the best offers, as far as it pays for them all. The nearer its end, the better
	// they must be: other things cost time too, and a burst of good offers may still come.
	if spareNs <= 0 || b.offers.betterNs(price) > float64(min(b.limitNs, carefulShare*spareNs)) {
		r.keep(unpaid)
		return b.nextBinNs(), false // the share itself grows no sooner
	}
	r.kept = notKept
	r.admittedNs = costNs
	b.admittedNs += costNs
	return 0, true
}

// kept is why a region stays registered that could have been released.
type kept uint8

const (
	notKept kept = iota
	unpaid
	unworthy
)

// keep notes why a region stays registered: the first reason since its last use.
func (r *region) keep(why kept) {
	if r.kept == notKept {
		r.kept = why
	}
}

// used counts a use of a region, for which it was registered all the time or not.
func (b *Budget) used(r *region) {
	switch r.kept {
	case unpaid:
		b.counts.Unpaid++
	case unworthy:
		b.counts.Unworthy++
	}
	r.kept, r.offered = notKept, false
}

// withdraw takes back what admits has set aside for a region: its deregistration was done, or will not be.
func (b *Budget) withdraw(r *region) {
	b.admittedNs -= r.admittedNs
	r.admittedNs = 0
}
