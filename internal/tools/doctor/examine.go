package doctor

import (
	"cmp"
	"path/filepath"
	"slices"

	"pinwheel/internal/settings"
	"pinwheel/internal/tools/launch"
)

// Examine asks the machine everything.
func Examine(m Machine) *Report {
	return m.report(m.system, m.library, m.providers, m.limits, m.kernel, m.mappings, m.processors, m.helpers,
		m.transports, m.compatibility, m.settings, m.choice)
}

// Abilities asks only what could be used: providers, watches of mappings and processors.
func Abilities(m Machine) *Report {
	return m.report(m.library, m.providers, m.mappings, m.processors)
}

func (m *Machine) report(ask ...func() section) *Report {
	r := &Report{Version: m.Version}
	for _, a := range ask {
		r.Findings = append(r.Findings, a().findings...)
	}
	r.Usable = !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Status == Problem })
	return r
}

func (m *Machine) library() section {
	s := section{name: "Library for MPI programs"}
	path, err := m.Library()
	if err != nil {
		s.add(Problem, "libpinwheel.so", "without it pinwheel run and record start programs as they are", "%v", err)
		return s
	}
	s.add(OK, "libpinwheel.so", "", "%s", path)
	if !m.exists(filepath.Join(filepath.Dir(path), launch.GoSide)) {
		s.add(Problem, launch.GoSide, "install it there; without it programs run as they are", "not beside libpinwheel.so")
	}
	return s
}

func (m *Machine) settings() section {
	s := section{name: "Settings (pinwheel info -c has all)"}
	for _, w := range m.Warnings {
		s.add(Note, "environment", "correct or unset it", "%s", w)
	}
	for _, v := range settings.Variables() {
		if value := m.getenv(v.Name); value != "" && settings.Check(v.Name, value) == nil {
			s.add(OK, v.Name, "", "%s (default: %s)", value, cmp.Or(v.Default, "none"))
		}
	}
	if len(s.findings) == 0 {
		s.add(OK, "environment", "", "no PINWHEEL_ variable is set; defaults hold")
	}
	return s
}
