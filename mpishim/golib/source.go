package main

/*
#include "bind.h"
*/
import "C"

import (
	"sync/atomic"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/predictor"
)

// source is the consumer's side of the DQ of one C thread: queue.Ring, whose
// argument holds here, over memory of C. It implements helper.Source.
type source struct {
	ring  *C.struct_pw_ring
	clock *ticks
}

// Pop moves the oldest event to *e. Helper only.
func (s *source) Pop(e *helper.Event) bool {
	const mask = C.PW_RING - 1
	for {
		slot := &s.ring.slots[s.ring.tail&mask]
		turn := atomic.LoadUint64(word64(&slot.turn))
		tail := uint64(s.ring.tail)
		if turn == C.PW_TURN_FREE {
			return false
		}
		if turn == C.PW_TURN_TAKEN {
			return false // ours alone; can't be
		}
		if turn != 2*tail+2 {
			s.ring.tail = C.uint64_t((turn-2)/2 - mask) // overrun: all before that is gone
			continue
		}
		if atomic.CompareAndSwapUint64(word64(&slot.turn), turn, C.PW_TURN_TAKEN) {
			s.convert(e, &slot.item)
			atomic.StoreUint64(word64(&slot.turn), C.PW_TURN_FREE)
			s.ring.tail++
			return true
		}
	}
}

func (s *source) convert(e *helper.Event, c *C.struct_pw_event) {
	e.Region = mem.RegionID(c.region)
	e.Range = mem.Range{Start: mem.Addr(c.start), End: mem.Addr(c.end)}
	e.StartNs, e.EndNs = s.clock.ns(uint64(c.start_ticks)), s.clock.ns(uint64(c.end_ticks))
	e.Op = predictor.Op(c.op)
	for i := range e.Frames {
		e.Frames[i] = uint64(c.site.frames[i])
	}
	e.Pages = uint64(c.pages)
}

// ticks turns readings of pw_ticks into times of the helper's clock. It is
// used by the helper alone.
type ticks struct {
	read  func() uint64
	nowNs func() int64
	line  moment  // a point of the line
	slope float64 // nanoseconds per tick
	first moment
}

type moment struct {
	ticks uint64
	ns    int64
}

func newTicks(sh *C.struct_pw_shared) *ticks {
	return ticksOf(func() uint64 { return uint64(C.pw_read_ticks(sh)) }, helper.NowNs)
}

func ticksOf(read func() uint64, nowNs func() int64) *ticks {
	t := &ticks{read: read, nowNs: nowNs, slope: 1}
	t.first = t.now()
	t.line = t.first
	return t
}

// nsPerTick is the mean since the first moment. Any thread may ask.
func (t *ticks) nsPerTick() float64 {
	now := t.now()
	return float64(now.ns-t.first.ns) / float64(max(now.ticks-t.first.ticks, 1))
}

// now reads both clocks as close together as it gets.
func (t *ticks) now() (best moment) {
	least := uint64(1) << 62
	for range 5 {
		before := t.read()
		ns := t.nowNs()
		after := t.read()
		if after-before < least {
			least, best = after-before, moment{before + (after-before)/2, ns}
		}
	}
	return best
}

// ns converts one reading. The line is drawn anew through the first moment and
// the present one when that is twice as far away as the point before: the
// longer the base, the better the slope, and the fewer readings.
func (t *ticks) ns(at uint64) int64 {
	if int64(at-t.first.ticks) >= 2*int64(t.line.ticks-t.first.ticks) {
		t.line = t.now()
		if d := t.line.ticks - t.first.ticks; d > 0 {
			t.slope = float64(t.line.ns-t.first.ns) / float64(d)
		}
	}
	return t.line.ns + int64(float64(int64(at-t.line.ticks))*t.slope)
}
