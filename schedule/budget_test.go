package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

const second = 1_000_000_000

func none() int64 { return 0 }

// mostSpent returns the most that was spent in any window, and the most at one time.
func mostSpent(log []spending, windowNs int64) (most, single int64) {
	var sum int64
	first := 0
	for _, s := range log {
		sum += s.ns
		for log[first].atNs <= s.atNs-windowNs {
			sum -= log[first].ns
			first++
		}
		most, single = max(most, sum), max(single, s.ns)
	}
	return most, single
}

// However a driver spends that asks before it does, and whatever its share was before: over any 10 s
// it stays within its share and one operation, and since the limit began within the share of the whole time.
func TestBudgetHoldsOverAnyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.SampledFrom([]float64{0.001, 0.01, 0.05, 0.3, 0.99}).Draw(t, "share")
		beganNs := rapid.Int64Range(0, 100*second).Draw(t, "began")
		b := newBudget(testCosts, us)
		b.Spend(second, beganNs/2) // before there was a limit
		b.SetShare(share, beganNs)
		var log []spending
		nowNs, total := beganNs, int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			nowNs += rapid.OneOf(rapid.Int64Range(0, 3*ms), rapid.Int64Range(0, second), rapid.Int64Range(0, 25*second)).Draw(t, "later")
			ns := rapid.OneOf(rapid.Int64Range(1, ms), rapid.Int64Range(1, 5*second)).Draw(t, "cost")
			may := b.Rest(nowNs, none) <= nowNs
			if rapid.Bool().Draw(t, "registers") {
				_, may = b.paysRegistration(nowNs)
			}
			if !may {
				continue
			}
			if rapid.Bool().Draw(t, "acts") {
				b.Acted(ns, nowNs)
			} else {
				b.Spend(ns, nowNs)
			}
			total += ns
			log = append(log, spending{nowNs, ns})
			if limit := int64(share * float64(nowNs-beganNs+2*binNs)); total-ns > limit {
				t.Fatalf("%d ns spent since the begin before the last %d; the share is %d", total-ns, ns, limit)
			}
		}
		most, single := mostSpent(log, budgetWindowNs)
		if limit := int64(share * budgetWindowNs); most > limit+single {
			t.Fatalf("%d ns within 10 s, more than %d and one operation of %d", most, limit, single)
		}
	})
}

func TestOverdraftIsPaidBackBeforeAnythingElse(t *testing.T) {
	b := newBudget(testCosts, us)
	b.SetShare(0.01, 0)
	if _, ok := b.paysRegistration(0); !ok {
		t.Fatal("the first registration is refused")
	}
	b.Acted(second, ms) // ten times what the share has in 10 s
	for nowNs := int64(2 * ms); nowNs < 98*second; nowNs += 50 * ms {
		if _, ok := b.paysRegistration(nowNs); ok {
			t.Fatalf("a registration after %.2f s; a second at 1 %% takes 100 s", float64(nowNs)/second)
		}
		if b.Rest(nowNs, none) <= nowNs {
			t.Fatalf("a look after %.2f s", float64(nowNs)/second)
		}
	}
	retryNs, ok := b.paysRegistration(101 * second)
	if !ok || b.Rest(101*second, none) > 101*second {
		t.Errorf("no registration after 101 s; the next chance is at %d ns", retryNs)
	}
}

func TestNothingIsSavedUp(t *testing.T) {
	b := newBudget(testCosts, us)
	b.SetShare(0.1, 0)
	var spentNs int64
	for nowNs := int64(100 * second); b.Rest(nowNs, none) <= nowNs; nowNs += us {
		b.Spend(10*ms, nowNs)
		spentNs += 10 * ms
	}
	if spentNs < 990*ms || spentNs > 1020*ms {
		t.Errorf("%d ms at once after 100 s at 10 %%, want what the share has in 10 s", spentNs/ms)
	}
}

// limited returns a simulation whose helper may use a share of a processor.
func limited(share float64) *simulation {
	v := newSimulation("pinwheel")
	v.s.Budget().SetShare(share, 0)
	return v
}

// savedOf returns for how much of the time a region was not registered, from a time on.
func (v *simulation) savedOf(id mem.RegionID, fromNs int64) float64 {
	var off int64
	sinceNs := fromNs
	out := false
	for _, m := range v.marks[id] {
		if out {
			off += max(0, m.atNs-sinceNs)
		}
		out, sinceNs = m.what == '.', max(m.atNs, fromNs)
	}
	if out {
		off += v.nowNs - sinceNs
	}
	return float64(off) / float64(v.nowNs-fromNs)
}

// mixed is a program that uses, every 400 ms, a big region that stays idle for long, and small ones that
// are used twice as often: they save less for what they cost. The helper would need 0.66 % of a processor
// for the big one and 0.61 % for the small ones.
func (v *simulation) mixed(seconds int64) {
	v.pages[1] = 2000
	small := []mem.RegionID{2, 3, 4, 5, 6, 7, 8, 9}
	for v.nowNs < seconds*second {
		v.nowNs += 98 * ms
		v.use([]mem.RegionID{1}, 1, ms)
		v.use(small, 2, ms)
		v.nowNs += 199 * ms
		v.use(small, 2, ms)
		v.nowNs += 100 * ms
	}
}

func TestBudgetGoesToWhatSavesMostForItsCost(t *testing.T) {
	v := limited(0.008)
	v.mixed(60)
	big, small := v.savedOf(1, 20*second), v.savedOf(2, 20*second)
	if big < 0.9 {
		t.Errorf("the big region was registered for %.0f %% of the time", 100*(1-big))
	}
	if small > 0.5 {
		t.Errorf("the small region was not registered for %.0f %% of the time: the share has too little for all", 100*small)
	}
	if c := v.s.Budget().Counts(v.nowNs); c.Unpaid == 0 || c.LimitedNs != v.nowNs {
		t.Errorf("%+v: uses of regions that could not be paid are not counted", c)
	}
	if v.late > v.needs/200 {
		t.Errorf("%d of %d needs were late: what is released must be paid for twice", v.late, v.needs)
	}
	if most, single := mostSpent(v.spent, budgetWindowNs); most > budgetWindowNs*8/1000+single {
		t.Errorf("%d us within 10 s", most/us)
	}
}

func TestSavingGrowsWithTheShare(t *testing.T) {
	var before float64
	for _, share := range []float64{0.001, 0.003, 0.007, 0.01, 0.05} {
		v := limited(share)
		v.mixed(60)
		saved := 20 * v.savedOf(1, 20*second)
		for id := range mem.RegionID(8) {
			saved += v.savedOf(2+id, 20*second)
		}
		if saved < before-0.2 {
			t.Errorf("at %.1f %%: saved %.2f, at less before %.2f", 100*share, saved, before)
		}
		before = max(before, saved)
		if v.late > v.needs/100 {
			t.Errorf("at %.1f %%: %d of %d needs were late", 100*share, v.late, v.needs)
		}
	}
	if before < 20 {
		t.Errorf("at 5 %%: saved %.2f of 28: all that is possible can be paid", before)
	}
}

// What the share can't pay now, it can't pay before it grows: a look in between only costs more of it.
func TestWhatCantBePaidIsNotLookedAtBeforeTheShareGrows(t *testing.T) {
	v := limited(0.05)
	v.pages[1] = 10_000 // 13 ms for a cycle
	for range 10 {
		v.use([]mem.RegionID{1}, 1, ms)
		v.nowNs += 499 * ms
	}
	v.s.Budget().Spend(second, v.nowNs)
	v.use([]mem.RegionID{1}, 1, ms)
	v.s.Observe(v.events[0], v.nowNs)
	before := v.s.Budget().Counts(v.nowNs)
	for nowNs := v.nowNs; nowNs < v.nowNs+300*ms; {
		a := v.s.Next(nowNs)
		nextNs := (nowNs/binNs + 1) * binNs
		if a.Kind != Wait || a.UntilNs < nextNs {
			t.Fatalf("after %d us: %+v, %d us before the share grows", (nowNs-v.nowNs)/us, a, (nextNs-a.UntilNs)/us)
		}
		nowNs = a.UntilNs
	}
	v.use([]mem.RegionID{1}, 1, ms)
	v.s.Observe(v.events[1], v.nowNs)
	if c := v.s.Budget().Counts(v.nowNs); c.Unpaid != before.Unpaid+1 {
		t.Errorf("%+v, before %+v: want one use unpaid", c, before)
	}
}

// Without a limit, or with all of a processor, a program is treated as ever.
func TestShareOfAllChangesNothing(t *testing.T) {
	var logs [2][]Action
	for i := range logs {
		v := newSimulation("pinwheel")
		if i == 1 {
			v.s.Budget().SetShare(1, 0)
		}
		v.fail = func(a Action) error { logs[i] = append(logs[i], a); return nil }
		v.mixed(10)
		if c := v.s.Budget().Counts(v.nowNs); c != (BudgetCounts{}) {
			t.Errorf("counted %+v", c)
		}
	}
	if len(logs[0]) == 0 || !slices.Equal(logs[0], logs[1]) {
		t.Errorf("%d and %d actions", len(logs[0]), len(logs[1]))
	}
}

// chatter is a program whose small regions are used so often that they save next to nothing.
func (v *simulation) chatter(untilNs int64) {
	for v.nowNs < untilNs {
		for id := range mem.RegionID(10) {
			v.pages[id+1] = 5
			v.use([]mem.RegionID{id + 1}, uint64(id), us)
			v.nowNs += 100 * us
		}
	}
}

func TestHelperParksWhereNothingCanBeSavedAndComesBack(t *testing.T) {
	v := limited(0.05)
	v.chatter(9 * second)
	if v.s.Budget().Counts(v.nowNs).Parks != 0 {
		t.Fatal("parked before it could learn anything")
	}
	v.chatter(12 * second)
	c, spent := v.s.Budget().Counts(v.nowNs), len(v.spent)
	if c.Parks != 1 {
		t.Fatalf("%+v after 12 s, want one park", c)
	}
	v.chatter(19 * second)
	if n := len(v.spent) - spent; n > 0 {
		t.Errorf("a parked helper did %d things", n)
	}
	v.chatter(32 * second)
	if n := len(v.spent) - spent; n == 0 {
		t.Error("it did not look again")
	}
	v.chatter(36 * second)
	if c := v.s.Budget().Counts(v.nowNs); c.Parks != 2 || c.ParkedNs != firstParkNs+2*firstParkNs {
		t.Errorf("%+v: the second park is twice as long", c)
	}
	// Much more memory is registered: the program is another one now.
	before := v.nowNs
	for id := range mem.RegionID(20) {
		v.pages[100+id] = 200
	}
	for range 100 {
		for id := range mem.RegionID(20) {
			v.use([]mem.RegionID{100 + id}, uint64(100+id), ms)
		}
		v.nowNs += 500 * ms
	}
	if saved := v.savedOf(105, before+20*second); saved < 0.8 {
		t.Errorf("a region of the new phase is registered for %.0f %% of the time", 100*(1-saved))
	}
}

// A helper that has little to do costs nothing worth mentioning, so it stays.
func TestHelperWithLittleToDoDoesNotPark(t *testing.T) {
	v := limited(0.05)
	for range 100 {
		v.use([]mem.RegionID{1}, 1, ms)
		v.nowNs += second
	}
	if c := v.s.Budget().Counts(v.nowNs); c.Parks != 0 {
		t.Errorf("parked %d times", c.Parks)
	}
}

func TestPricesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p prices
		a := rapid.Float64Range(leastPrice, 1e22).Draw(t, "a")
		b := rapid.Float64Range(leastPrice, 1e22).Draw(t, "b")
		if p.add(a, 7); p.betterNs(a) != 0 {
			t.Fatalf("an offer is better than itself")
		}
		if a < b && p.step(a) > p.step(b) {
			t.Fatalf("%g is above %g", a, b)
		}
		if got := p.betterNs(b); got != 0 && (got != 7 || a < b) {
			t.Fatalf("better than %g: %g ns, of an offer at %g", b, got, a)
		}
	})
}

func ExampleBudget() {
	var b Budget
	b.SetShare(0.02, 0)
	b.Spend(250_000_000, 0) // a registration of 250 ms
	for s := range int64(4) {
		nowNs := s * 5_000_000_000
		fmt.Println(nowNs/1e9, "s: rests:", b.Rest(nowNs, func() int64 { return 0 }) > nowNs)
	}
	// Output:
	// 0 s: rests: true
	// 5 s: rests: true
	// 10 s: rests: true
	// 15 s: rests: false
}
