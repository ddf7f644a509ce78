package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"pinwheel/internal/clock/clocktest"
)

// TestPacer draws how the helper waits, under a false clock. Command:
//
//	run for=10ms column=100us late=15us [events=(1ms,2ms)] [every=5ms] [deadlines=(3ms)]
//
// every repeats the events. One column of the chart is one span of time: z asleep, w woken in vain,
// E event taken, D deadline met. The line after the chart sums it up.
func TestPacer(t *testing.T) {
	datadriven.RunTest(t, "testdata/pacer", func(t *testing.T, d *datadriven.TestData) string {
		list := func(key string) []int64 { return clocktest.ScanNs(t, d, key) }
		duration := func(key string) int64 { return append(list(key), 0)[0] }
		r := pacerRun{endNs: duration("for"), columnNs: duration("column"), lateNs: duration("late"),
			events: list("events"), deadlines: list("deadlines")}
		if every := duration("every"); every > 0 {
			for n := len(r.events); r.events[len(r.events)-n]+every < r.endNs; {
				r.events = append(r.events, r.events[len(r.events)-n]+every)
			}
		}
		return r.draw()
	})
}

// pacerRun is a time in which the helper waits.
type pacerRun struct {
	endNs, columnNs   int64
	lateNs            int64 // of every sleep
	events, deadlines []int64
}

func (r *pacerRun) draw() string {
	p := NewPacer(0, 10*ms)
	chart := []byte(strings.Repeat("z", int(r.endNs/r.columnNs)))
	var sleeps, worstEventNs, worstDeadlineNs int64
	for now := int64(0); now < r.endNs; {
		found := byte('w')
		for len(r.events) > 0 && r.events[0] <= now {
			worstEventNs = max(worstEventNs, now-r.events[0])
			p.Used(r.events[0])
			r.events = r.events[1:]
			found = 'E'
		}
		dueNs := int64(Never)
		for len(r.deadlines) > 0 && p.Near(now, r.deadlines[0]) {
			worstDeadlineNs = max(worstDeadlineNs, now-r.deadlines[0])
			r.deadlines = r.deadlines[1:]
			found = 'D'
		}
		if len(r.deadlines) > 0 {
			dueNs = r.deadlines[0]
		}
		if i := min(int(now/r.columnNs), len(chart)-1); found != 'w' || chart[i] == 'z' {
			chart[i] = found
		}
		sleepNs := p.PlanNs(now, Waiting{DueNs: dueNs, ReviewNs: Never})
		sleeps++
		p.Slept(now, sleepNs, now+sleepNs+r.lateNs)
		now += sleepNs + r.lateNs
	}
	us := func(ns int64) int64 { return (ns + 500) / 1000 }
	return fmt.Sprintf("%s\nsleeps %d, event at most %d us late, deadline at most %d us late\n",
		chart, sleeps, us(worstEventNs), us(worstDeadlineNs))
}

// The bound on wake-ups: in the steady state of a program, one for each deadline, and one to three for
// each phase of uses, however long the phases are apart and however many uses there are in one.
func TestWakeupsAreBoundedByPhases(t *testing.T) {
	for _, gap := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, 900 * time.Millisecond} {
		for _, uses := range []int{1, 2, 8} {
			const phases, warmup = 100, 10
			p, now := NewPacer(0, 10*ms), int64(0)
			wakeups := 0
			for phase := range int64(phases) {
				startNs := phase * int64(gap)
				dueNs := startNs - int64(gap)/50
				for k := range uses {
					endNs := startNs + int64(k)*20_000
					for now < endNs {
						untilNs := int64(Never)
						if !p.Near(now, dueNs) {
							untilNs = dueNs
						}
						now += p.PlanNs(now, Waiting{DueNs: untilNs, ReviewNs: Never})
						if phase >= warmup {
							wakeups++
						}
					}
					p.Used(endNs)
				}
			}
			if most := 4 * (phases - warmup); wakeups > most {
				t.Errorf("%d uses every %v: %d wake-ups, want at most %d", uses, gap, wakeups, most)
			}
		}
	}
}

// Looks take no more of a core than looksShare, whatever happens.
func TestLooksTakeABoundedShareOfACore(t *testing.T) {
	const endNs = 4_000_000_000
	for _, everyNs := range []int64{1_000, 10_000, 200_000, 3_000_000} {
		p := NewPacer(0, 10*ms)
		var looks, lastNs int64
		for now := int64(0); now < endNs; looks++ {
			for ; lastNs+everyNs <= now; lastNs += everyNs {
				p.Used(lastNs + everyNs)
			}
			now += p.PlanNs(now, Waiting{DueNs: Never, ReviewNs: now + 1})
		}
		if most := int64(looksShare*endNs/WakeupNs) + mostLooks + 2; looks > most {
			t.Errorf("a use every %d us: %d looks in 4 s, want at most %d", everyNs/1000, looks, most)
		}
	}
}

// A use that begins after a long silence is noticed soon after its end, although no silence was ever as long.
func TestSilenceEndsWithAMiss(t *testing.T) {
	const beginNs, endNs = 3_000_000_000, 3_010_000_000
	p := NewPacer(0, 10*ms)
	p.Slept(0, mostPollNs*4, beginNs)
	now := int64(beginNs)
	for now < endNs {
		now += p.PlanNs(now, Waiting{DueNs: Never, ReviewNs: Never})
	}
	if most := int64(endNs + (endNs-beginNs)/pollShare); now > most {
		t.Errorf("noticed %d us after its end, want at most %d", (now-endNs)/1000, (most-endNs)/1000)
	}
}

// A use that had to be waited for is over sooner than the program is silent at other times. Its end is noticed soon
// after it, and not when such a silence would be over.
func TestMissedUseIsFollowed(t *testing.T) {
	const everyNs, tookNs = 1_000_000_000, 10_000_000
	p := NewPacer(0, 10*ms)
	now := int64(0)
	for range 20 {
		now += everyNs
		p.Used(now)
	}
	begunNs := now + everyNs/2
	p.Slept(now, everyNs, begunNs)
	p.Missed(begunNs)
	looks := 0
	for now = begunNs; now < begunNs+tookNs; looks++ {
		now += p.PlanNs(now, Waiting{DueNs: Never, ReviewNs: Never})
	}
	if lateNs, most := now-begunNs-tookNs, int64(tookNs/pollShare)+MinPollNs; lateNs > most || looks > 30 {
		t.Errorf("noticed %d us after its end with %d looks, want at most %d us", lateNs/us, looks, most/us)
	}
}

// With nothing registered there is no use whose event could come, but one that is missed. A wake-up for what is known
// already, as of a miss whose event came before it, changes nothing.
func TestNobodyLooksWithNothingRegistered(t *testing.T) {
	const everyNs = 10 * ms
	p := NewPacer(0, everyNs)
	w := Waiting{DueNs: Never, ReviewNs: Never, NoneHeld: true}
	for now := int64(everyNs); now < 100*everyNs; now += everyNs {
		p.Missed(now)
		if ns := p.PlanNs(now, w); ns > everyNs {
			t.Fatalf("sleeps for %d us in a use that was missed", ns/us)
		}
		p.Used(now + ms)
		p.Slept(now+ms, mostPollNs, now+ms+us)
		if ns := p.PlanNs(now+ms+us, w); ns != mostPollNs {
			t.Fatalf("sleeps for %d us, want %d", ns/us, mostPollNs/us)
		}
	}
	if ns := p.PlanNs(0, Waiting{DueNs: 20 * ms, ReviewNs: Never, NoneHeld: true}); ns > 20*ms || ns < 19*ms {
		t.Errorf("sleeps for %d us before a registration in 20 ms", ns/us)
	}
}

// Wake-ups by uses that had to be waited for are no looks: where every use is one, each is noticed soon after its end.
func TestMissesLeaveTheLooks(t *testing.T) {
	const everyNs, tookNs = ms, 200_000
	p := NewPacer(0, 10*ms)
	var now, waitedNs int64
	const uses = 10_000
	for range uses {
		p.Slept(now, 10*ms, now+everyNs)
		now += everyNs
		p.Missed(now)
		endNs := now + tookNs
		for now < endNs {
			now += p.PlanNs(now, Waiting{DueNs: Never, ReviewNs: Never})
		}
		p.Used(endNs)
		waitedNs += now - endNs
	}
	if most := int64(everyNs / 4); waitedNs/uses > most {
		t.Errorf("a use waits %d us for a look, want at most %d", waitedNs/uses/us, most/us)
	}
}

// The histogram against a list of all silences: the pause after which a finished use has waited for so long, on
// average.
func TestPauseFollowsFromTheSilences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s silences
		lengths := rapid.SliceOfN(rapid.Int64Range(2_000, 2_000_000_000), 1, 20).Draw(t, "silences")
		for _, ns := range lengths {
			s.add(ns)
		}
		silentNs := rapid.Float64Range(1, 2e9).Draw(t, "silent")
		waitNs := rapid.Float64Range(1, 1e8).Draw(t, "wait")
		pauseNs := s.pauseNs(silentNs, waitNs)
		var longer, waited float64
		for _, ns := range lengths {
			if float64(ns) > silentNs {
				longer++
				waited += max(silentNs+pauseNs-float64(ns), 0)
			}
		}
		// A bin is up to a 16th wide, and older silences count a little less.
		if longer > 0 && waited/longer > 1.2*waitNs+0.07*(silentNs+pauseNs) {
			t.Fatalf("a use would wait for %.0f ns, not for %.0f", waited/longer, waitNs)
		}
		if pauseNs < waitNs-1 {
			t.Fatalf("a pause of %.0f ns, although uses may wait for %.0f", pauseNs, waitNs)
		}
		if most := max(waitNs, (silentNs-float64(slices.Max(lengths)))/pollShare) + 1; longer == 0 && pauseNs > most {
			t.Fatalf("a pause of %.0f ns in a silence longer than all, want at most %.0f", pauseNs, most)
		}
	})
}

// Silences of one bin end at any time between the shortest and the longest: a pause must not last until most of
// them are long over.
func TestPauseEndsWithinABin(t *testing.T) {
	var s silences
	var lengths []int64
	for ns := int64(1_008_000_000); ns < 1_039_000_000; ns += 500_000 {
		s.add(ns)
		lengths = append(lengths, ns)
	}
	if silenceBinOf(lengths[0]) != silenceBinOf(lengths[len(lengths)-1]) {
		t.Fatal("the silences are of several bins")
	}
	for _, silentNs := range []float64{1e6, 1_020_000_000} {
		for _, waitNs := range []float64{50_000, 1_000_000, 10_000_000} {
			atNs := silentNs + s.pauseNs(silentNs, waitNs)
			var waited, longer float64
			for _, ns := range lengths {
				if float64(ns) > silentNs {
					longer++
					waited += max(atNs-float64(ns), 0)
				}
			}
			if got := waited / longer; got < waitNs/2 || got > 1.5*waitNs {
				t.Errorf("silent for %.0f ns: a use would wait for %.0f ns on average, want %.0f", silentNs, got, waitNs)
			}
		}
	}
}

// On the core of a rank, looks take no more than their share, whatever one takes there, of all helpers on it together.
func TestLooksTakeTheirShareOfARanksCore(t *testing.T) {
	for _, lookNs := range []int64{3_000, WakeupNs, 40_000} {
		for _, helpers := range []int{1, 2, 4} {
			want := 0.05 * looksPart / float64(helpers)
			if got := looksTake(helpers, lookNs); got > 1.05*want || got < want/4 {
				t.Errorf("looks of %d ns take %.3f %% of a core, beside %d other helpers; want up to %.3f", lookNs, 100*got, helpers-1, 100*want)
			}
		}
	}
}

// looksTake returns the share of a processor that the looks of one of its helpers take, beside a rank with a use every
// 3 ms.
func looksTake(helpers int, lookNs int64) float64 {
	const everyNs, endNs = 3_000_000, 20_000_000_000
	p := NewPacer(0, 10*ms)
	p.SetShare(0.05, helpers)
	looks := int64(0)
	for nowNs, usedNs := int64(0), int64(0); nowNs < endNs; looks++ {
		for ; usedNs+everyNs <= nowNs; usedNs += everyNs {
			p.Used(usedNs + everyNs)
		}
		p.Looked(lookNs)
		sleepNs := p.PlanNs(nowNs, Waiting{DueNs: Never, ReviewNs: Never})
		nowNs += sleepNs
		p.Slept(nowNs-sleepNs, sleepNs, nowNs)
	}
	return float64(looks*max(lookNs, WakeupNs)) / endNs
}
