package main

import (
	"pinwheel/internal/compare"
	"pinwheel/testbed/live/runlog"
)

// line is any other line: a run of a row, or its replay.
type line struct {
	Row string `json:"row"`
	// Load is the load of the machine before the run (proc_loadavg(5)), over one minute.
	Load float64 `json:"load,omitempty"`
	*compare.Run
	Replay *replayed `json:"replay,omitempty"`
}

// state has what was measured so far.
type state struct {
	runlog.File[runlog.Head, line]
}

// has reports whether a run of a row has been done well.
func (s *state) has(row string, m compare.Mode, round int) bool {
	for _, l := range s.Lines {
		if l.Row == row && l.Run != nil && l.Mode == m && l.Round == round && l.Failed == "" {
			return true
		}
	}
	return false
}

// of returns what was measured of a row, without failures that a later run made good.
func (s *state) of(row string) (runs []compare.Run, load []float64, replay *replayed) {
	for _, l := range s.Lines {
		if l.Row != row {
			continue
		}
		if l.Replay != nil {
			replay = l.Replay
		}
		if l.Run != nil && (l.Failed == "" || !s.has(row, l.Mode, l.Round)) {
			runs, load = append(runs, *l.Run), append(load, l.Load)
		}
	}
	return runs, load, replay
}

// rows returns the names of the rows that were measured, in the order of their first runs.
func (s *state) rows() (names []string) {
	seen := map[string]bool{}
	for _, l := range s.Lines {
		if !seen[l.Row] {
			seen[l.Row] = true
			names = append(names, l.Row)
		}
	}
	return names
}
