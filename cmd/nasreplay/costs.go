package main

import (
	"embed"
	"errors"
	"io/fs"
	"path"

	"pinwheel/replay/report"
	"pinwheel/verbs/calibrate"
)

// calibrations are the costs that have a name: uring and mlock as measured
// for results/, and rdma from UCX, which models an InfiniBand adapter so.
//
//go:embed calibrations/*.json
var calibrations embed.FS

// loadCosts returns the costs of a name, or else of a calibration file.
func loadCosts(name string) (report.Costs, error) {
	cal, err := namedCalibration(name)
	if errors.Is(err, fs.ErrNotExist) {
		if cal, err = calibrate.Load(name); errors.Is(err, fs.ErrNotExist) {
			err = usagef("--costs %s: neither a file nor one of rdma, uring, mlock", name)
		}
	}
	if err != nil {
		return report.Costs{}, err
	}
	note := cal.Source
	if cal.Machine != "" {
		note += " on " + cal.Machine + ", Linux " + cal.Kernel + ", " + cal.Date
	}
	return report.Costs{Name: cal.Provider, Costs: cal.Costs(), Note: note}, nil
}

func namedCalibration(name string) (*calibrate.Calibration, error) {
	f, err := calibrations.Open(path.Join("calibrations", name+".json"))
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	return calibrate.Read(f)
}
