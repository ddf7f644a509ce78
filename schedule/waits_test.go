package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// TestWaits draws what is left for the waits of a rank, under a false clock. Command:
//
//	run for=20ms column=500us cost=500us pages=2048 usual=100ms waits=(2ms,3ms) work=(0ms,10ms) [chance=0.5]
//
// waits has the begin and end of each wait, and work the moments at which something is to be deregistered.
// In the chart of the rank, ~ is a wait; in that of the helper, l is a look for one, and D the deregistration.
func TestWaits(t *testing.T) {
	datadriven.RunTest(t, "testdata/waits", func(t *testing.T, d *datadriven.TestData) string {
		r := waitsRun{waits: newWaits(), endNs: clocktest.ScanNs(t, d, "for")[0], columnNs: clocktest.ScanNs(t, d, "column")[0],
			usualNs: clocktest.ScanNs(t, d, "usual")[0], at: clocktest.ScanNs(t, d, "waits"), work: clocktest.ScanNs(t, d, "work")}
		r.action.CostNs = clocktest.ScanNs(t, d, "cost")[0]
		d.ScanArgs(t, "pages", &r.action.Pages)
		d.MaybeScanArgs(t, "chance", &r.waits.chance)
		return r.draw()
	})
}

type waitsRun struct {
	waits                    waits
	endNs, columnNs, usualNs int64
	at, work                 []int64
	action                   Action
}

func (r *waitsRun) isWaiting(nowNs int64) bool {
	for i := 0; i < len(r.at); i += 2 {
		if r.at[i] <= nowNs && nowNs < r.at[i+1] {
			return true
		}
	}
	return false
}

func (r *waitsRun) draw() string {
	rank, helper := make([]byte, r.endNs/r.columnNs), make([]byte, r.endNs/r.columnNs)
	for i := range rank {
		rank[i], helper[i] = '-', ' '
		if r.isWaiting(int64(i) * r.columnNs) {
			rank[i] = '~'
		}
	}
	for _, now := range r.work {
		for ; r.waits.putOff(&r.action, now, r.usualNs, r.isWaiting(now)); now = r.waits.nextLookNs() {
			helper[now/r.columnNs] = 'l'
		}
		helper[now/r.columnNs] = 'D'
		r.waits.nothingLeft(now)
	}
	return fmt.Sprintf("%s\n%s\nthe next look finds a wait with %.2f\n", rank, strings.TrimRight(string(helper), " "), r.waits.chance)
}

// Whatever happens: nothing is put off for longer than its memory is worth, nor for long beside the silence,
// and not while the rank waits; and looks take less of the rank's time than the deregistrations themselves.
func TestWhatIsPutOffIsBounded(t *testing.T) {
	testwait.Bound(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		w, looks := newWaits(), int64(0)
		wakeupNs := WakeupNs + random.Int64N(10*WakeupNs)
		w.wakeupNs = float64(wakeupNs)
		usualNs := random.Int64N(int64(time.Second))
		share := random.Float64() // of the time, the rank waits
		a := Action{CostNs: 1 + random.Int64N(2_000_000), Pages: 1 + random.Uint64N(1<<14)}
		const rounds = 100
		for now := int64(1); now < rounds*int64(time.Second); now += int64(time.Second) {
			at := now
			for {
				waiting := random.Float64() < share
				if !w.putOff(&a, at, usualNs, waiting) {
					break
				}
				if waiting {
					t.Fatalf("%+v is put off although the rank waits", a)
				}
				looks++
				at = w.nextLookNs()
			}
			w.nothingLeft(at)
			heldNs := at - now
			if worthNs := float64(a.CostNs) * bytesPerCore / float64(a.Pages*mem.PageSize); float64(heldNs) > worthNs || heldNs > usualNs/putOffShare {
				t.Fatalf("%+v is put off for %d us, with a silence of %d us", a, heldNs/1000, usualNs/1000)
			}
		}
		if looks*wakeupNs > rounds*a.CostNs {
			t.Fatalf("%d looks for %d deregistrations of %d ns", looks, rounds, a.CostNs)
		}
	}
}

// A registration begins early by a sixteenth of the silence and 10 ms at most, and a look for that must pay.
func TestRegistrationIsBroughtForwardALittle(t *testing.T) {
	const usualNs, dueNs = 80 * ms, 1000 * ms
	const windowNs = dueNs - usualNs/putOffShare
	w := newWaits()
	w.registered(ms)
	if _, lookNs := w.bringForward(0, dueNs, 3600_000*ms, func() bool { return true }); lookNs != dueNs-mostEarlyNs {
		t.Errorf("in a silence of an hour it looks %d ms before it is due", (dueNs-lookNs)/ms)
	}
	rank := func(waits bool) func() bool { return func() bool { return waits } }
	for _, c := range []struct {
		registerNs, nowNs int64
		waits, begins     bool
		lookNs            int64
	}{
		{ms, 0, true, false, windowNs},
		{ms, windowNs - 1, true, false, windowNs},
		{20 * us, windowNs - 1, true, false, Never}, // a look costs as much
		{20 * us, windowNs, true, true, Never},      // but it looks now
		{ms, windowNs, true, true, Never},
		{ms, windowNs, false, false, Never},
		{ms, dueNs - 1, false, false, Never},
	} {
		w := newWaits()
		for range 50 {
			w.registered(c.registerNs)
		}
		begins, lookNs := w.bringForward(c.nowNs, dueNs, usualNs, rank(c.waits))
		if begins != c.begins || lookNs != c.lookNs {
			t.Errorf("%d us before it is due, the rank waits %t: begins %t, looks at %d us; want %t and %d us",
				(dueNs-c.nowNs)/us, c.waits, begins, lookNs/us, c.begins, c.lookNs/us)
		}
	}
	w = newWaits()
	w.registered(100 * ms)
	for range 100 { // looks in vain
		if _, lookNs := w.bringForward(0, dueNs, usualNs, rank(false)); lookNs != Never {
			w.bringForward(lookNs, dueNs, usualNs, rank(false))
		}
	}
	if w.chance > 0.01 {
		t.Errorf("after 100 looks in vain the chance is %g", w.chance)
	}
}
