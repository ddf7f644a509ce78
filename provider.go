package pinwheel

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

// OpenProvider opens the provider that o.ProviderName names, for who
// registers without a Manager. auto is the first that works: rdma
// where there is a device, else uring, else mlock.
func OpenProvider(o *Options) (verbs.Provider, error) {
	if o.ProviderName != "auto" {
		p, err := openNamed(o.ProviderName, o)
		if err != nil {
			return nil, fmt.Errorf("pinwheel: provider %s: %w", o.ProviderName, err)
		}
		return p, nil
	}
	var failed []error
	for _, name := range []string{"rdma", "uring", "mlock"} {
		p, err := openNamed(name, o)
		if err == nil {
			return p, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", name, err))
	}
	return nil, fmt.Errorf("pinwheel: nothing here can register memory: %w", errors.Join(failed...))
}

// openNamed never returns a nil pointer in a non-nil interface.
func openNamed(name string, o *Options) (verbs.Provider, error) {
	switch name {
	case "rdma":
		return orError(rdma.Open(rdma.Options{Device: o.RDMADevice}))
	case "uring":
		return orError(uring.Open(uring.Options{}))
	case "mlock":
		return orError(mlock.Open())
	case "sim":
		return sim.New(sim.Options{Costs: cmp.Or(o.Costs, defaultCosts)}), nil
	}
	return nil, errors.New("no such provider (choose from auto, rdma, uring, mlock, sim)")
}

func orError[P verbs.Provider](p P, err error) (verbs.Provider, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
