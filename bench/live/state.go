package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"pinwheel/internal/compare"
	"pinwheel/internal/machine"
)

// head is the first line of a file of runs, and says what was measured where.
type head struct {
	Build    string          `json:"build"` // a digest of what was built
	Version  string          `json:"version"`
	Date     string          `json:"date"`
	Machine  machine.Machine `json:"machine"`
	Software []string        `json:"software"` // packages and their versions
}

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
	file  *os.File
	head  head
	lines []line
}

// readState reads a file of runs. The last line may be torn, if a measurement was killed; whole is the size
// of the others.
func readState(path string) (s state, whole int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, 0, err
	}
	defer f.Close() // only read from
	in := bufio.NewReader(f)
	for n := 0; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s, whole, nil
		}
		if err != nil {
			return s, whole, err
		}
		var l line
		into := any(&l)
		if n == 0 {
			into = &s.head
		}
		if json.Unmarshal(text, into) != nil {
			return s, whole, nil
		}
		if n > 0 {
			s.lines = append(s.lines, l)
		}
		whole += int64(len(text))
	}
}

// openState goes on with the file of an earlier measurement of the same build, or begins it anew.
func openState(path string, h head) (*state, error) {
	s, whole, err := readState(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	if s.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if s.head.Build != h.Build {
		if whole > 0 {
			say("%s is of another build: beginning anew", path)
		}
		s.lines, whole = nil, 0
	}
	if err := s.file.Truncate(whole); err != nil {
		return nil, err
	}
	if _, err := s.file.Seek(whole, io.SeekStart); err != nil {
		return nil, err
	}
	if whole == 0 {
		s.head = h
		return &s, s.write(h)
	}
	return &s, nil
}

// write writes a line at once, so that a kill tears at most this one.
func (s *state) write(what any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(what); err != nil {
		return err
	}
	_, err := s.file.Write(b.Bytes())
	return err
}

func (s *state) add(l line) error {
	s.lines = append(s.lines, l)
	return s.write(l)
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

// buildOf is a digest of files.
func buildOf(paths ...string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("%w (make build softverbs)", err)
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }
