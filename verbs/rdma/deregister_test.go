//go:build linux && cgo

package rdma

import (
	"errors"
	"syscall"
	"testing"

	"pinwheel/verbs"
)

// boundRegion is a memory region that can't be deregistered while a memory
// window is bound to it.
type boundRegion struct{ bound bool }

func (r *boundRegion) Dereg() error {
	if r.bound {
		return syscall.EBUSY
	}
	return nil
}

// TestFailedDeregistrationCanBeRepeated is the conformance suite's test of that
// name, without a device.
func TestFailedDeregistrationCanBeRepeated(t *testing.T) {
	p := &Provider{}
	mr := &boundRegion{bound: true}
	g := verbs.Region{Handle: p.regions.Put(registration{mr: mr})}
	for range 2 {
		if err := p.Deregister(g); !errors.Is(err, verbs.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
	}
	mr.bound = false
	if err := p.Deregister(g); err != nil {
		t.Fatal(err)
	}
	if err := p.Deregister(g); !errors.Is(err, verbs.ErrUnknownRegion) {
		t.Errorf("the second time: %v, want ErrUnknownRegion", err)
	}
}
