package main

import (
	"errors"
	"io/fs"
	"strings"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay/report"
	"pinwheel/results/calibration"
	"pinwheel/verbs/calibrate"
)

// loadCosts returns the costs of a committed calibration, named by the
// beginning of its name, or else of a file.
func loadCosts(name string) (report.Costs, error) {
	var known []string
	for _, n := range calibration.Names() {
		if name != "" && strings.HasPrefix(n, name) {
			known = append(known, n)
		}
	}
	if len(known) > 1 {
		return report.Costs{}, command.Usagef("--costs %s may be %s", name, strings.Join(known, " or "))
	}
	if len(known) == 1 {
		cal, err := calibration.Named(known[0])
		return costsOf(cal, known[0]), err
	}
	cal, err := calibrate.Load(name)
	if errors.Is(err, fs.ErrNotExist) {
		return report.Costs{}, command.Usagef("--costs %s: neither a file nor one of %s", name, strings.Join(calibration.Names(), ", "))
	}
	if err != nil {
		return report.Costs{}, err
	}
	return costsOf(cal, name), nil
}

// costsOf names costs that were measured after their provider, and others
// after the calibration, so that nobody takes them for measured.
func costsOf(cal *calibrate.Calibration, name string) report.Costs {
	if cal == nil {
		return report.Costs{}
	}
	c := report.Costs{Name: name, Costs: cal.Costs(), Note: cal.Source}
	if cal.Machine != "" {
		c.Name, c.Note = cal.Provider, cal.Source+" on "+cal.Machine+", Linux "+cal.Kernel+", "+cal.Date
	}
	return c
}
