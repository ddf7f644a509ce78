//go:build cgo

package main

import (
	"testing"

	"pinwheel/predictor"
	"pinwheel/trace"
)

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
