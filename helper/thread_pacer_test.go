package helper

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestPacer draws how the helper waits, under a false clock. Command:
//
//	run for=10ms column=100us late=15us [events=1ms,2ms] [deadlines=3ms]
//
// One column of the chart is one span of time: z asleep, s spinning for part of
// it, E event taken, D deadline met. The lines after the chart sum it up.
func TestPacer(t *testing.T) {
	datadriven.RunTest(t, "testdata/pacer", func(t *testing.T, d *datadriven.TestData) string {
		duration := func(key string) int64 {
			var s string
			d.ScanArgs(t, key, &s)
			return parseNs(t, s)
		}
		list := func(key string) (all []int64) {
			if arg, ok := d.Arg(key); ok {
				for _, v := range arg.Vals {
					all = append(all, parseNs(t, v))
				}
			}
			return all
		}
		return runPacer(duration("for"), duration("column"), duration("late"), list("events"), list("deadlines"))
	})
}

func parseNs(t *testing.T, s string) int64 {
	v, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return int64(v)
}

const spinRoundNs = 100

func runPacer(endNs, columnNs, lateNs int64, events, deadlines []int64) string {
	p := newPacer(0)
	chart := []byte(strings.Repeat("z", int(endNs/columnNs)))
	mark := func(ns int64, c byte) {
		i := min(int(ns/columnNs), len(chart)-1)
		if chart[i] != 'E' && chart[i] != 'D' || c != 's' {
			chart[i] = c
		}
	}
	var sleeps, worstEventNs, worstDeadlineNs int64
	for now := int64(0); now < endNs; {
		for len(events) > 0 && events[0] <= now {
			worstEventNs = max(worstEventNs, now-events[0])
			events = events[1:]
			p.active(now)
			mark(now, 'E')
		}
		untilNs := int64(never)
		for len(deadlines) > 0 && deadlines[0] <= now {
			worstDeadlineNs = max(worstDeadlineNs, now-deadlines[0])
			deadlines = deadlines[1:]
			p.active(now)
			mark(now, 'D')
		}
		if len(deadlines) > 0 {
			untilNs = deadlines[0]
		}
		sleepNs := p.plan(now, untilNs)
		if sleepNs == 0 {
			mark(now, 's')
			now += spinRoundNs
			continue
		}
		sleeps++
		p.slept(sleepNs, sleepNs+lateNs)
		now += sleepNs + lateNs
	}
	us := func(ns int64) int64 { return (ns + 500) / 1000 }
	return fmt.Sprintf("%s\nsleeps %d, spun %d us, event at most %d us late, deadline at most %d us late\n",
		chart, sleeps, us(p.spunNs), us(worstEventNs), us(worstDeadlineNs))
}
