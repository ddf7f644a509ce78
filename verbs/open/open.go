// Package open opens providers by name, as PINWHEEL_PROVIDER has it.
package open

import (
	"cmp"
	"errors"
	"fmt"

	"pinwheel/verbs"
	"pinwheel/verbs/mlock"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
)

// Options are the parameters of providers that can be opened in several ways.
type Options struct {
	Device string      // of rdma: NAME or NAME:PORT; empty: the first
	Costs  verbs.Costs // of sim; zero: verbs.DefaultCosts
}

// Provider opens a provider: rdma, uring, mlock, sim, or auto, the first that
// works: rdma where there is a device, else uring, else mlock. The caller closes
// it. If none works, the error says why for each.
func Provider(name string, o Options) (verbs.Provider, error) {
	if name != "auto" {
		p, err := named(name, o)
		if err != nil {
			return nil, fmt.Errorf("pinwheel: provider %s: %w", name, err)
		}
		return p, nil
	}
	var failed []error
	for _, name := range []string{"rdma", "uring", "mlock"} {
		p, err := named(name, o)
		if err == nil {
			return p, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", name, err))
	}
	return nil, fmt.Errorf("pinwheel: nothing here can register memory: %w", errors.Join(failed...))
}

// named never returns a nil pointer in a non-nil interface.
func named(name string, o Options) (verbs.Provider, error) {
	switch name {
	case "rdma":
		return orError(rdma.Open(rdma.Options{Device: o.Device}))
	case "uring":
		return orError(uring.Open(uring.Options{}))
	case "mlock":
		return orError(mlock.Open())
	case "sim":
		return sim.New(sim.Options{Costs: cmp.Or(o.Costs, verbs.DefaultCosts)}), nil
	}
	return nil, errors.New("no such provider (choose from auto, rdma, uring, mlock, sim)")
}

func orError[P verbs.Provider](p P, err error) (verbs.Provider, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
