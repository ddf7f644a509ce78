// Package jobreport puts the reports that the ranks of a job write, one file
// each, into one.
//
// # Caveats
//
// The files must be seen from the node where the job was started.
package jobreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"pinwheel/mpishim/report"
)

// ErrNone: no rank has written a report.
var ErrNone = errors.New("no rank has written a report")

// Dir is a directory for the reports of one job.
type Dir struct{ path string }

// NewDir makes a directory in the working directory, which nodes of a cluster
// usually share, or else in that for temporary files.
func NewDir() (Dir, error) {
	wd, err := os.Getwd()
	if err == nil {
		if path, err := os.MkdirTemp(wd, "pinwheel-report-"); err == nil {
			return Dir{path}, nil
		}
	}
	path, err := os.MkdirTemp("", "pinwheel-report-")
	return Dir{path}, err
}

// Pattern is the value for PINWHEEL_STATS; see settings.Expand.
func (d Dir) Pattern() string {
	return filepath.Join(strings.ReplaceAll(d.path, "%", "%%"), "%r.json")
}

// Files returns the reports that are there.
func (d Dir) Files() ([]string, error) { return filepath.Glob(filepath.Join(d.path, "*.json")) }

// Remove removes the directory and the reports.
func (d Dir) Remove() error { return os.RemoveAll(d.path) }

// Write reads reports of single ranks of one job, as PINWHEEL_STATS=FILE.json
// has them, and prints one of all. A file that can't be read doesn't keep the
// others back: it is in the error, one line for each.
func Write(w io.Writer, files []string) error {
	var ranks []report.Rank
	var bad []error
	for _, name := range files {
		r, err := read(name)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		ranks = append(ranks, r)
	}
	if len(ranks) == 0 {
		return errors.Join(append(bad, ErrNone)...)
	}
	return errors.Join(append(bad, report.Write(w, ranks))...)
}

func read(name string) (r report.Rank, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is not the report of a rank: %w", name, err)
	}
	if r.Size < 1 && r.PID == 0 {
		return r, fmt.Errorf("%s is not the report of a rank", name)
	}
	return r, nil
}
