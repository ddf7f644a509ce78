//go:build cgo

package main

import (
	"testing"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/mpishim/report"
	"pinwheel/predictor"
	"pinwheel/trace"
)

func event(op predictor.Op, frame, bytes uint64) *helper.Event {
	e := &helper.Event{}
	e.Op, e.Frames[0], e.Range = op, frame, mem.Range{Start: 4096, End: 4096 + mem.Addr(bytes)}
	return e
}

func TestSitesAreCountedByCallAndPlaceTheLargestFirst(t *testing.T) {
	s := newSiteTable()
	send, recv := predictor.Op(trace.OpSend), predictor.Op(trace.OpRecv)
	for _, e := range []*helper.Event{event(send, 16, 100), event(recv, 16, 1000), event(send, 32, 150), event(send, 16, 100)} {
		s.count(e)
	}
	got := s.top()
	want := []report.Site{{Op: "recv", Uses: 1, Bytes: 1000}, {Op: "send", Uses: 2, Bytes: 200}, {Op: "send", Uses: 1, Bytes: 150}}
	if len(got) != len(want) {
		t.Fatalf("%d sites, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Op != want[i].Op || got[i].Uses != want[i].Uses || got[i].Bytes != want[i].Bytes {
			t.Errorf("site %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestSiteTableIsBoundedAndGoesOnCounting(t *testing.T) {
	s := newSiteTable()
	for i := range uint64(mostSites + 10) {
		s.count(event(1, i+1, 1))
	}
	s.count(event(1, 1, 1<<20)) // one that is in it
	if len(s.all) != mostSites {
		t.Errorf("%d sites, want %d", len(s.all), mostSites)
	}
	if top := s.top(); top[0].Uses != 2 || top[0].Bytes != 1<<20+1 {
		t.Errorf("the largest: %+v", top[0])
	}
}

func TestSiteIsNamedFromTheInsideOut(t *testing.T) {
	known := map[uint64]symbol{ // of the byte before the return address
		0xfff:  {"exchange", "/opt/app", 0x1f},
		0x1fff: {"", "/opt/app", 0x2000},
		0x2fff: {"main", "/opt/app", 0x10},
		0x3fff: {"", "/lib/libc.so.6", 0x27249},
	}
	lookup := func(address uint64) symbol { return known[address] }
	for _, c := range []struct {
		frames []uint64
		want   string
	}{
		{[]uint64{0x1000, 0x2000, 0x3000, 0x4000}, "exchange+0x1f < app+0x2000 < main+0x10"},
		{[]uint64{0x3000, 0x4000, 0, 0}, "main+0x10"},
		{[]uint64{0x4000, 0, 0, 0}, "libc.so.6+0x27249"},
		{[]uint64{0x9000, 0x3000, 0, 0}, "0x9000 < main+0x10"},
		{[]uint64{0, 0x3000}, "unknown (built without frame pointers)"},
	} {
		if got := siteName(c.frames, lookup); got != c.want {
			t.Errorf("%#x: %q, want %q", c.frames, got, c.want)
		}
	}
}

func TestEveryKindOfCallHasAName(t *testing.T) {
	seen := map[string]predictor.Op{}
	for op := predictor.Op(trace.OpSend); op <= lastOp; op++ {
		name := opName(op)
		if other, twice := seen[name]; twice || name == "" || name == "invalid" {
			t.Errorf("kind %d is named %q, as is %d", op, name, other)
		}
		seen[name] = op
	}
}
