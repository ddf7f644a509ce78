package schedule

import (
	"testing"

	"pinwheel/mem"
)

// A program that maps, sends and unmaps a new buffer each time leaves nothing of them behind.
func TestForgottenRegionsAreNotKept(t *testing.T) {
	v := newSimulation("pinwheel")
	for id := range mem.RegionID(20) {
		v.nowNs += ms
		v.use([]mem.RegionID{id + 1}, 1, 10*us)
		if id > 0 {
			v.s.Forget(id + 1)
			delete(v.marks, id+1)
		}
	}
	kept := 0
	for r := v.s.regions[1].after; r != nil; r = r.after {
		kept++
	}
	if kept > 1 || v.s.last != nil {
		t.Errorf("%d regions that are gone are kept, and %+v", kept, v.s.last)
	}
}
