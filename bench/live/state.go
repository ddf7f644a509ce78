package main

import (
	"encoding/json"
	"os"

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
	log   *runlog.Log
	head  runlog.Head
	lines []line
}

// take takes the next line of a file of runs.
func (s *state) take(n int, text []byte) error {
	if n == 0 {
		return json.Unmarshal(text, &s.head)
	}
	var l line
	err := json.Unmarshal(text, &l)
	if err == nil {
		s.lines = append(s.lines, l)
	}
	return err
}

// readState reads a file of runs. The last line may be torn, if a measurement was killed; whole is the size
// of the others.
func readState(path string) (s state, whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, 0, err
	}
	defer f.Close() // only read from
	whole, err = runlog.Read(f, s.take)
	return s, whole, err
}

// openState goes on with the file of an earlier measurement of the same build, or begins it anew.
func openState(path string, h runlog.Head) (*state, error) {
	s := &state{}
	log, otherBuild, err := runlog.Open(path, h, func(n int, text []byte) error {
		err := s.take(n, text)
		if err == nil && s.head.Build != h.Build {
			err = runlog.ErrOtherBuild
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if otherBuild {
		say("%s is of another build: beginning anew", path)
	}
	if s.head.Build != h.Build {
		s.head = h
	}
	s.log = log
	return s, nil
}

func (s *state) add(l line) error {
	s.lines = append(s.lines, l)
	return s.log.Add(l)
}

// has reports whether a run of a row has been done well.
func (s *state) has(row string, m compare.Mode, round int) bool {
	for _, l := range s.lines {
		if l.Row == row && l.Run != nil && l.Mode == m && l.Round == round && l.Failed == "" {
			return true
		}
	}
	return false
}

// of returns what was measured of a row, without failures that a later run made good.
func (s *state) of(row string) (runs []compare.Run, load []float64, replay *replayed) {
	for _, l := range s.lines {
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
	for _, l := range s.lines {
		if !seen[l.Row] {
			seen[l.Row] = true
			names = append(names, l.Row)
		}
	}
	return names
}
