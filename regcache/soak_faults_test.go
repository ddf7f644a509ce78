package regcache_test

import (
	"math/rand/v2"
	"syscall"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// device is the provider below: a real one that can transfer, if this kernel has io_uring.
type device interface {
	verbs.Provider
	verbs.Accountant
}

// faulty makes a device fail at random.
type faulty struct {
	device
	calls atomic.Uint64
}

func (f *faulty) fault(op string, r mem.Range, kinds ...syscall.Errno) error {
	n := f.calls.Add(1)
	rng := rand.New(rand.NewPCG(n, 7))
	if rng.IntN(40) != 0 {
		return nil
	}
	errno := kinds[rng.IntN(len(kinds))]
	return &verbs.Error{Op: op, Range: r, Kind: verbs.Kind(errno), Errno: errno}
}

func (f *faulty) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := f.fault("soak register", r, syscall.ENOMEM, syscall.ENOSPC, syscall.EAGAIN, syscall.EINTR); err != nil {
		return verbs.Region{}, err
	}
	return f.device.Register(r, a)
}

func (f *faulty) Deregister(g verbs.Region) error {
	// Passing shortages only: a provider that keeps regions would be a leak.
	if err := f.fault("soak deregister", g.Range, syscall.EAGAIN, syscall.EINTR); err != nil {
		return err
	}
	return f.device.Deregister(g)
}
