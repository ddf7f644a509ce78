// Package clocktest has a clock for tests.
package clocktest

import (
	"runtime"

	"go.uber.org/atomic"
)

// Fake is a clock.Clock on which all happens in no time: every reading takes
// 100 ns and every sleep is late by LateNs. It is safe for concurrent use.
type Fake struct {
	Time   atomic.Int64 // nanoseconds
	LateNs int64
	Sleeps atomic.Int64
}

// NowNs implements clock.Clock.
func (f *Fake) NowNs() int64 { return f.Time.Add(100) }

// SleepNs implements clock.Clock.
func (f *Fake) SleepNs(ns int64, _ <-chan struct{}) {
	f.Sleeps.Inc()
	f.Time.Add(ns + f.LateNs)
	runtime.Gosched()
}
