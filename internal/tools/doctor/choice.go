package doctor

import (
	"pinwheel/internal/settings"
	"pinwheel/mem"
)

// choice says what the others found leads to.
func (m *Machine) choice() section {
	s := section{name: "Choices"}
	if m.Settings.Disable {
		s.add(Note, "nothing", "unset PINWHEEL_DISABLE to have it", "PINWHEEL_DISABLE is set: everything is passed through")
		return s
	}
	p, err := m.provider()
	switch {
	case err != nil && m.Settings.Provider != "auto":
		s.add(Problem, "provider", "choose another with PINWHEEL_PROVIDER, or leave it to auto", "%v", err)
	case err != nil:
		s.add(Problem, "provider", "see above", "none")
	case m.Settings.Provider != "auto":
		s.add(OK, "provider", "", "%s, as PINWHEEL_PROVIDER says", p.Name)
	case p.Name == "rdma":
		s.add(OK, "provider", "", "rdma: there is a device")
	default:
		s.add(Note, "provider", "for MPI programs to gain anything, see rdma above",
			"%s: no RDMA device works, so MPI programs register nothing", p.Name)
	}
	s.add(OK, "policy", "", "%s, for transfers of %s and more", m.Settings.Policy, size(m.Settings.ThresholdBytes))
	budget := size(m.Settings.BudgetBytes) + ", as PINWHEEL_BUDGET says"
	if m.Settings.BudgetBytes == settings.Auto {
		budget = "what the process may register"
		if err == nil {
			if l, err := p.Limits(); err == nil && l.MaxPinnedBytes != mem.Unlimited {
				budget += ": " + size(l.MaxPinnedBytes)
			}
		}
	}
	s.add(OK, "budget", "", "%s", budget)
	return s
}
