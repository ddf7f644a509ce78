package main

import (
	"pinwheel/verbs"
)

func loadCosts(name string) (verbs.Costs, string, error) {
	switch name {
	case "rdma":
		return verbs.Costs{Register: verbs.Cost{PerPageNs: 250, FixedNs: 16000}, Deregister: verbs.Cost{PerPageNs: 20, FixedNs: 5000}}, name, nil
	}
	return verbs.Costs{}, "", usagef("unknown costs %q", name)
}
