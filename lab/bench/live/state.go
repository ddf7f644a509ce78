package main

import (
	"fmt"
	"strings"

	"pinwheel/internal/tools/compare"
	"pinwheel/lab/kit"
)

// key is a row of the tables.
type key struct {
	Row  string `json:"row"`
	User string `json:"user"` // who has measured it
}

// line is any line but the head: a run of a row, its replay, or why it can't be measured here.
type line struct {
	key
	// Load is the load of the machine before the run (proc_loadavg(5)), over one minute.
	Load float64 `json:"load,omitempty"`
	*compare.Run
	// MessageNs is what a message took, of programs that say so.
	MessageNs float64   `json:"message_ns,omitempty"`
	Replay    *replayed `json:"replay,omitempty"`
	Missing   string    `json:"missing,omitempty"`
}

// state has what was measured so far.
type state struct {
	kit.Log[kit.Head, line]
}

// has reports whether a run of a row has been done well.
func (s *state) has(k key, m compare.Mode, round int) bool {
	for _, l := range s.Lines {
		if l.key == k && l.Run != nil && l.Mode == m && l.Round == round && l.Failed == "" {
			return true
		}
	}
	return false
}

// of returns what was measured of a row, without failures that a later run made good.
func (s *state) of(k key) (runs []compare.Run, load []float64, replay *replayed) {
	for _, l := range s.Lines {
		if l.key != k {
			continue
		}
		if l.Replay != nil {
			replay = l.Replay
		}
		if l.Run != nil && (l.Failed == "" || !s.has(k, l.Mode, l.Round)) {
			runs, load = append(runs, *l.Run), append(load, l.Load)
		}
	}
	return runs, load, replay
}

// keys returns the rows that were measured, in the order of their first runs.
func (s *state) keys() (keys []key) {
	seen := map[key]bool{}
	for _, l := range s.Lines {
		if !seen[l.key] && l.Missing == "" {
			seen[l.key] = true
			keys = append(keys, l.key)
		}
	}
	return keys
}

// leaveOut notes once why a row can't be measured here.
func (s *state) leaveOut(row, why string) error {
	for _, l := range s.Lines {
		if l.Row == row && l.Missing == why {
			return nil
		}
	}
	return s.Add(line{key: key{Row: row}, Missing: why})
}

// leftOut returns the rows of which nothing was measured.
func (s *state) leftOut() (left leftOut) {
	measured := map[string]bool{}
	for _, k := range s.keys() {
		measured[k.Row] = true
	}
	for _, l := range s.Lines {
		if l.Missing != "" && !measured[l.Row] {
			left.add(l.Missing, l.Row)
		}
	}
	return left
}

// leftOut are rows by why they were left out.
type leftOut struct {
	whys []string // in the order of the rows
	rows map[string][]string
}

func (o *leftOut) add(why, row string) {
	if o.rows == nil {
		o.rows = map[string][]string{}
	}
	if len(o.rows[why]) == 0 {
		o.whys = append(o.whys, why)
	}
	o.rows[why] = append(o.rows[why], row)
}

// lines says it, a line for each reason.
func (o *leftOut) lines() (lines []string) {
	for _, why := range o.whys {
		lines = append(lines, fmt.Sprintf("%s: %s", strings.Join(o.rows[why], ", "), why))
	}
	return lines
}
