package node

import (
	"errors"
	"os"

	"go.uber.org/atomic"

	"pinwheel/internal/machine"
)

// Owner identifies one member on this node. The start time tells a process from a
// later one with the same number.
type Owner struct {
	PID      int32
	Instance uint32 // of the members of the process
	Start    uint64 // clock ticks after boot: field 22 of /proc/PID/stat
}

var instances atomic.Uint32

func newOwner() (Owner, error) {
	p, err := machine.ReadProcess(os.Getpid())
	return Owner{PID: int32(os.Getpid()), Instance: instances.Inc(), Start: p.StartTicks}, err
}

// gone reports whether no thread of the process runs any more. Its memory is then no longer
// pinned, as the kernel unpins it while the last thread exits; but see lingerNs. A process
// that can't be looked at counts as running.
func (o Owner) gone() bool {
	p, err := machine.ReadProcess(int(o.PID))
	return errors.Is(err, machine.ErrGone) || err == nil && p.StartTicks != o.Start
}
