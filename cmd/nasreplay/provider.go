package main

import (
	"pinwheel"
	"pinwheel/internal/settings"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// openProvider opens what --provider names. The simulated one takes as long
// as the given costs say.
func openProvider(name string, costs verbs.Costs) (verbs.Provider, error) {
	if name == "sim" {
		return sim.New(sim.Options{Costs: costs, Wait: true}), nil
	}
	s, _ := settings.FromEnvironment() // pinwheel info tells its warnings
	return pinwheel.OpenProvider(&pinwheel.Options{ProviderName: name, RDMADevice: s.RDMADevice})
}
