package schedule

import (
	"testing"
)

// demandJob is a program with call sites that have each one buffer: it is needed once in periodNs for a moment, and
// registering and deregistering it takes cycleNs.
type demandJob struct {
	sites []demandJobSite
	rule  *Demand
	nowNs int64

	spentNs int64
	counts  []DemandCounts
	savedNs []int64 // for which the buffer of each site was not registered
	changes int     // of what is kept
}

type demandJobSite struct {
	bytes, periodNs, cycleNs int64
	cached                   bool // the buffer is registered by the cache
}

func newDemandJob(cost float64, sites ...demandJobSite) *demandJob {
	return &demandJob{
		rule: NewDemand(cost, 0), sites: sites,
		counts: make([]DemandCounts, len(sites)), savedNs: make([]int64, len(sites)),
	}
}

// run goes on until untilNs, with a look whenever the rule asks for one.
func (j *demandJob) run(untilNs int64) {
	const stepNs = 1_000_000
	for lookNs := j.nowNs + j.rule.PauseNs(); j.nowNs < untilNs; j.nowNs += stepNs {
		for i := range j.sites {
			if j.nowNs%j.sites[i].periodNs == 0 {
				j.use(i)
			}
		}
		if j.nowNs >= lookNs {
			j.look()
			lookNs = j.nowNs + j.rule.PauseNs()
		}
	}
}

func (j *demandJob) use(i int) {
	s := &j.sites[i]
	j.counts[i].Uses++
	if s.cached {
		return
	}
	if j.counts[i].Uses > 1 {
		j.savedNs[i] += s.periodNs
		j.counts[i].SavedByteNs += float64(s.bytes * s.periodNs)
	}
	j.spend(i, s.cycleNs/2)
	if s.cached = j.rule.Kept(i) || j.spentNs >= j.rule.LimitNs(); !s.cached {
		j.counts[i].Freed++
		j.spend(i, s.cycleNs/2)
	}
}

func (j *demandJob) spend(i int, ns int64) {
	j.spentNs += ns
	j.counts[i].SpentNs += ns
}

func (j *demandJob) look() {
	var kept []bool
	for i := range j.sites {
		kept = append(kept, j.rule.Kept(i))
	}
	j.rule.Look(j.nowNs, j.spentNs, j.counts)
	for i := range j.sites {
		if j.rule.Kept(i) != kept[i] {
			j.changes++
		}
		if j.sites[i].cached && !j.rule.Kept(i) && j.spentNs < j.rule.LimitNs() {
			j.sites[i].cached = false
			j.counts[i].Freed++
			j.spend(i, j.sites[i].cycleNs/2)
		}
	}
}

func TestAllIsOnDemandIfTheBudgetPaysForIt(t *testing.T) {
	j := newDemandJob(0.005,
		demandJobSite{bytes: 1 << 20, periodNs: 100 * ms, cycleNs: 200_000},
		demandJobSite{bytes: 1 << 10, periodNs: 50 * ms, cycleNs: 100_000})
	j.run(20 * second)
	if j.changes != 0 || j.savedNs[0] < 19*second || j.savedNs[1] < 19*second {
		t.Errorf("%d changes; %v ns saved of 20 s", j.changes, j.savedNs)
	}
}

// Whatever a program does, what is spent keeps to its share, and to what may be spent before it is earned. And it is spent.
func TestDemandSpendsItsShareAndNoMore(t *testing.T) {
	for name, sites := range map[string][]demandJobSite{
		"one site":         {{bytes: 32 << 20, periodNs: 50 * ms, cycleNs: 3 * ms}},
		"two that compete": {{bytes: 32 << 20, periodNs: 50 * ms, cycleNs: 3 * ms}, {bytes: 8 << 20, periodNs: 20 * ms, cycleNs: ms}},
		"rare and long":    {{bytes: 1 << 30, periodNs: 4 * second, cycleNs: 100 * ms}},
	} {
		for _, seconds := range []int64{1, 5, 60} {
			j := newDemandJob(0.005, sites...)
			j.run(seconds * second)
			longest := sites[0].cycleNs
			if most := (seconds+2)*second/200 + longest; j.spentNs > most {
				t.Errorf("%s: %d ms spent in %d s, want %d at most", name, j.spentNs/ms, seconds, most/ms)
			}
			if seconds == 60 && j.spentNs < 60*second/200*7/10 {
				t.Errorf("%s: only %d ms spent in %d s", name, j.spentNs/ms, seconds)
			}
		}
	}
}

func TestTheSiteThatSavesMostForItsCostIsOnDemand(t *testing.T) {
	j := newDemandJob(0.005,
		demandJobSite{bytes: 1 << 20, periodNs: 20 * ms, cycleNs: 90_000},
		demandJobSite{bytes: 16 << 20, periodNs: 20 * ms, cycleNs: 90_000})
	j.run(60 * second)
	if j.savedNs[1] < 58*second || j.savedNs[0] > 20*second {
		t.Errorf("%v ns saved of 60 s, want nearly all by the second", j.savedNs)
	}
}

// Of two sites that are worth the same one stays on demand. Else each change would cost a registration of both.
func TestSitesDoNotTakeTurns(t *testing.T) {
	site := demandJobSite{bytes: 1 << 20, periodNs: 20 * ms, cycleNs: 80_000}
	j := newDemandJob(0.005, site, site)
	j.run(60 * second)
	if most := max(j.savedNs[0], j.savedNs[1]); most < 57*second {
		t.Errorf("%v ns saved of 60 s, want nearly all by one of them", j.savedNs)
	}
}

// A program that changes what it does: the site that was too expensive is seldom used from now on.
func TestDemandFollowsTheProgram(t *testing.T) {
	j := newDemandJob(0.005, demandJobSite{bytes: 1 << 20, periodNs: 10 * ms, cycleNs: ms})
	j.run(20 * second)
	before := j.savedNs[0]
	if before > 5*second {
		t.Errorf("%d ms saved while it cost 10 %%", before/ms)
	}
	j.sites[0].periodNs = second
	j.run(80 * second)
	if saved := j.savedNs[0] - before; saved < 40*second {
		t.Errorf("%d ms saved of 60 s in which it costs .1 %%", saved/ms)
	}
}

// What was not spent is saved up, but not for ever: a program that computes for an hour doesn't stall for seconds then.
func TestLittleIsSavedUp(t *testing.T) {
	j := newDemandJob(0.005)
	j.run(3600 * second / 10)
	if left := j.rule.LimitNs(); left > 20*second/200 {
		t.Errorf("%d ms may be spent at once", left/ms)
	}
}

func TestLooksAreRareWhereLittleIsSpent(t *testing.T) {
	for _, c := range []struct{ cycleNs, least, most int64 }{{20_000, 1000 * ms, 1000 * ms}, {3 * ms, 100 * ms, 200 * ms}} {
		j := newDemandJob(0.005, demandJobSite{bytes: 1 << 20, periodNs: 50 * ms, cycleNs: c.cycleNs})
		j.run(second / 5)
		if got := j.rule.PauseNs(); got < c.least || got > c.most {
			t.Errorf("cycles of %d us: a look after %d ms", c.cycleNs/1000, got/ms)
		}
	}
}
