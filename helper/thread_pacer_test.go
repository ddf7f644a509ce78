package helper

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestPacer draws how the helper waits, under a false clock. Command:
//
//	run for=10ms column=100us late=15us [bytes=1M] [events=(1ms,2ms)] [every=5ms] [deadlines=(3ms)]
//
// every repeats the events. One column of the chart is one span of time: z asleep, w woken in vain,
// E event taken, D deadline met. The line after the chart sums it up.
func TestPacer(t *testing.T) {
	datadriven.RunTest(t, "testdata/pacer", func(t *testing.T, d *datadriven.TestData) string {
		duration := func(key string) int64 {
			var s string
			d.MaybeScanArgs(t, key, &s)
			return parseNs(t, cmp.Or(s, "0s"))
		}
		list := func(key string) (all []int64) {
			if arg, ok := d.Arg(key); ok {
				for _, v := range arg.Vals {
					all = append(all, parseNs(t, v))
				}
			}
			return all
		}
		mib := int64(never >> 20)
		d.MaybeScanArgs(t, "MiB", &mib)
		r := pacerRun{endNs: duration("for"), columnNs: duration("column"), lateNs: duration("late"), bytes: mib << 20,
			events: list("events"), deadlines: list("deadlines")}
		if every := duration("every"); every > 0 {
			for n := len(r.events); r.events[len(r.events)-n]+every < r.endNs; {
				r.events = append(r.events, r.events[len(r.events)-n]+every)
			}
		}
		return r.draw()
	})
}

func parseNs(t *testing.T, s string) int64 {
	v, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return int64(v)
}

// pacerRun is a time in which the helper waits.
type pacerRun struct {
	endNs, columnNs   int64
	lateNs            int64 // of every sleep
	bytes             int64
	events, deadlines []int64
}

func (r *pacerRun) draw() string {
	p := newPacer(0)
	chart := []byte(strings.Repeat("z", int(r.endNs/r.columnNs)))
	var sleeps, worstEventNs, worstDeadlineNs int64
	for now := int64(0); now < r.endNs; {
		found := byte('w')
		for len(r.events) > 0 && r.events[0] <= now {
			worstEventNs = max(worstEventNs, now-r.events[0])
			p.used(r.events[0])
			r.events = r.events[1:]
			found = 'E'
		}
		dueNs := int64(never)
		for len(r.deadlines) > 0 && p.near(now, r.deadlines[0]) {
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
		sleepNs := p.plan(now, dueNs, r.bytes)
		sleeps++
		p.slept(sleepNs, sleepNs+r.lateNs)
		now += sleepNs + r.lateNs
	}
	us := func(ns int64) int64 { return (ns + 500) / 1000 }
	return fmt.Sprintf("%s\nsleeps %d, event at most %d us late, deadline at most %d us late\n",
		chart, sleeps, us(worstEventNs), us(worstDeadlineNs))
}

// The bound on wake-ups: in the steady state of a program, one for each deadline, and one or two for
// each phase of uses, however long the phases are apart and however many uses there are in one.
func TestWakeupsAreBoundedByPhases(t *testing.T) {
	for _, gap := range []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, 900 * time.Millisecond} {
		for _, uses := range []int{1, 2, 8} {
			const phases, warmup = 100, 10
			p, now := newPacer(0), int64(0)
			wakeups := 0
			for phase := range int64(phases) {
				startNs := phase * int64(gap)
				dueNs := startNs - int64(gap)/50
				for k := range uses {
					endNs := startNs + int64(k)*20_000
					for now < endNs {
						untilNs := int64(never)
						if !p.near(now, dueNs) {
							untilNs = dueNs
						}
						now += p.plan(now, untilNs, 1<<30)
						if phase >= warmup {
							wakeups++
						}
					}
					p.used(endNs)
				}
			}
			if most := 3 * (phases - warmup); wakeups > most {
				t.Errorf("%d uses every %v: %d wake-ups, want at most %d", uses, gap, wakeups, most)
			}
		}
	}
}

// Where there is little to gain the helper rests, whatever happens.
func TestLooksTakeAThousandthOfACoreAtMostForLittleMemory(t *testing.T) {
	const endNs = 1_000_000_000
	for _, everyNs := range []int64{10_000, 200_000, 3_000_000} {
		p := newPacer(0)
		var sleeps, lastNs int64
		for now := int64(0); now < endNs; sleeps++ {
			for ; lastNs+everyNs <= now; lastNs += everyNs {
				p.used(lastNs + everyNs)
			}
			now += p.plan(now, never, 1<<20)
		}
		if most := int64(endNs/maxPollNs + 10); sleeps > most {
			t.Errorf("1 MiB, a use every %d us: %d wake-ups in a second, want at most %d", everyNs/1000, sleeps, most)
		}
	}
	p := newPacer(0)
	if ns := p.plan(5, never, 0); ns != mostPollNs {
		t.Errorf("with nothing registered it sleeps for %d ns, want %d", ns, mostPollNs)
	}
}
