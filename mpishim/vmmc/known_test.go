package main

import (
	"testing"
	"unsafe"
)

// A program that was built with an older header gives fewer fields: what lies behind them is not of the structure.
func TestStructureOfAnOlderHeaderHasZeroInNewFields(t *testing.T) {
	type structure struct{ size, old, new uint64 }
	memory := structure{size: 16, old: 1, new: 2}
	const first = unsafe.Offsetof(memory.new)
	if got, ok := known(&memory, first, first); !ok || got != (structure{16, 1, 0}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, size := range []uintptr{unsafe.Sizeof(memory), 1 << 40} {
		if got, ok := known(&memory, size, first); !ok || got != memory {
			t.Errorf("size %d: %+v, %v", size, got, ok)
		}
	}
	if got, ok := known(&memory, first-1, first); ok {
		t.Errorf("less than the first header had: %+v", got)
	}
}
