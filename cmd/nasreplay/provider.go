package main

import (
	"fmt"

	"pinwheel/verbs"
	"pinwheel/verbs/mlock"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/uring"
)

// providers are what --provider may name, besides auto. Auto takes the first
// of the list before sim that this machine has.
var providers = []struct {
	name  string
	probe func() error
	open  func() (verbs.Provider, error)
}{
	{"rdma", rdma.Probe, func() (verbs.Provider, error) { return rdma.Open(rdma.Options{}) }},
	{"uring", uring.Probe, func() (verbs.Provider, error) { return uring.Open(uring.Options{}) }},
	{"mlock", func() error { return nil }, func() (verbs.Provider, error) { return mlock.Open() }},
}

// openProvider opens what --provider names. The simulated one takes as long
// as the given costs say.
func openProvider(name string, costs verbs.Costs) (verbs.Provider, error) {
	if name == "sim" {
		return sim.New(sim.Options{Costs: costs, Wait: true}), nil
	}
	for _, p := range providers {
		if p.name == name || name == "auto" && p.probe() == nil {
			return p.open()
		}
	}
	return nil, fmt.Errorf("no provider %q", name)
}
