// Package clock is the one clock of the project: monotonic nanoseconds for the
// communication path, cheaper than the vDSO where the time stamp counter is
// sound, and sleeps that suit a helper thread. All of it is safe for concurrent
// use, except Ticks.
package clock

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"
)

// Clock is the time that a helper thread lives by. Shared and Dedicated are the
// real ones; tests use clocktest.Fake.
type Clock interface {
	// NowNs returns monotonic nanoseconds since a fixed point, without a
	// system call: the communication path reads it twice per use.
	NowNs() int64
	// SleepNs blocks the caller for about ns nanoseconds. It may return early (a
	// signal) or late; the helper measures how late. A sleep of at least LongNs
	// also ends when it can take a token from wake, which may be nil.
	SleepNs(ns int64, wake <-chan struct{})
}

// clockBase makes the reading of Go's monotonic clock relative; time.Since of
// it is a read of the vDSO.
var clockBase = time.Now()

// NowNs is the real clock: nanoseconds since about the start of the process.
// Once Calibrate was called it counts by the time stamp counter where that
// is sound (9 ns, against 23 ns of the vDSO, which also drains the pipeline). Its
// rate then differs from CLOCK_MONOTONIC by some 10 ppm at most: fit for
// intervals, not for dates. Safe for concurrent use; readings of different
// threads may be out of order by some tens of nanoseconds.
func NowNs() int64 {
	if l := tsc.Load(); l != nil {
		return l.ns(rdtsc())
	}
	return vdsoNs()
}

// tscLine turns ticks of the counter into nanoseconds.
type tscLine struct {
	atTicks uint64
	atNs    int64
	scale   uint64 // nanoseconds per tick, times 2^32
}

func (l *tscLine) ns(ticks uint64) int64 {
	hi, lo := bits.Mul64(ticks-l.atTicks, l.scale)
	return l.atNs + int64(hi<<32|lo>>32)
}

var (
	tsc      atomic.Pointer[tscLine]
	tscBegin = readBoth(rdtsc, vdsoNs)
	once     sync.Once
)

// reading is one moment on a counter and on a clock.
type reading struct {
	ticks uint64
	ns    int64
}

// readBoth reads a counter and a clock as close together as it gets in a few
// attempts: an interrupt in between would tilt the line.
func readBoth(ticks func() uint64, nowNs func() int64) (best reading) {
	least := uint64(math.MaxUint64)
	for range 5 {
		before := ticks()
		ns := nowNs()
		after := ticks()
		if after-before < least {
			least = after - before
			best = reading{before + least/2, ns}
		}
	}
	return best
}

func vdsoNs() int64 { return int64(time.Since(clockBase)) }

// FromMonotonic turns a reading of CLOCK_MONOTONIC (clock_gettime(2)), as C threads note it, into one of NowNs, to some
// 10 ppm of its age.
func FromMonotonic(ns int64) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return NowNs() // no Linux is without that clock
	}
	return NowNs() - (now.Nano() - ns)
}

// calibrationNs is the least time over which the rate of the counter is
// measured: a reading error of 20 ns is 10 ppm of that.
const calibrationNs = 2_000_000 // 2 ms

// Calibrate makes NowNs cheaper where that is possible. It may sleep for
// 2 ms in a process that was just started.
func Calibrate() {
	once.Do(func() {
		if !tscUsable() {
			return
		}
		if age := vdsoNs() - tscBegin.ns; age < calibrationNs {
			nanosleep(calibrationNs - age)
		}
		tsc.Store(newTSCLine(tscBegin, readBoth(rdtsc, vdsoNs)))
	})
}

// newTSCLine returns the line through two moments, or nil if the counter did
// not advance.
func newTSCLine(from, to reading) *tscLine {
	ticks, ns := to.ticks-from.ticks, to.ns-from.ns
	if to.ticks <= from.ticks || ns <= 0 {
		return nil
	}
	// From the earlier moment on, no reading is before the line's origin.
	return &tscLine{from.ticks, from.ns, uint64(math.Round(float64(ns) / float64(ticks) * (1 << 32)))}
}

// Shared is the real clock for programs whose own work runs on
// goroutines. While its thread sleeps, other goroutines may use its P: a helper
// that kept it took 30 to 45 % of two busy processors from a Go program, though
// it only slept. If all Ps are busy a wake-up waits for one, up to the 10 ms of
// Go's time slice; where there is an idle core there is an idle P as well.
type Shared struct{}

// NowNs implements Clock.
func (Shared) NowNs() int64 { return NowNs() }

// SleepNs implements Clock.
func (Shared) SleepNs(ns int64, wake <-chan struct{}) { sleep(ns, nanosleep, wake) }

// Dedicated is the real clock for programs in which helpers are the only
// goroutines: a C program under mpishim. Its thread keeps its P in a short
// sleep, since giving it up wakes the runtime's monitor, which runs on the
// core of the communication thread: 12.8 % of that core was measured, 0.2 %
// without. A garbage collection waits for such a sleep, since no signal of the runtime's may end it in a
// process of others; so a sleep of keepNs or more gives the P up.
type Dedicated struct{}

// NowNs implements Clock.
func (Dedicated) NowNs() int64 { return NowNs() }

// SleepNs implements Clock.
func (Dedicated) SleepNs(ns int64, wake <-chan struct{}) {
	if ns < keepNs {
		rawNanosleep(ns)
		return
	}
	sleep(ns, nanosleep, wake)
}

// keepNs is the least sleep in which a Dedicated keeps no P.
const keepNs = 1_000_000 // 1 ms

// LongNs is the least sleep that can be ended. It is how long the runtime lets a goroutine keep
// its P (forcePreemptNS in runtime/proc.go): while a P is held the monitor looks at it as often. With no goroutine awake
// the monitor sleeps too.
const LongNs = 10_000_000 // 10 ms

// sleep sleeps in a system call for a short time, and as a goroutine for a long one. The
// runtime's timers are exact to a millisecond only. A long one as a futex(2) in a system call took twice as much
// processor time of the whole process: the monitor looks on for 10 ms before it takes the P away.
func sleep(ns int64, short func(int64), wake <-chan struct{}) {
	if ns < LongNs {
		short(ns)
		return
	}
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	}
}
