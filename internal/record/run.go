package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinwheel/trace"
)

// Run is one recorded job.
type Run struct {
	pattern string // absolute
	dir     string
	match   *regexp.Regexp
	merged  string
}

// Result is what a job has recorded.
type Result struct {
	Path    string // of the one trace
	Program string
	Files   int     // of single ranks
	Ranks   int     // of the job
	Torn    []error // *trace.TornError of files that were cut off
}

// ErrNothing: no rank has written a trace.
var ErrNothing = errors.New("no trace was written")

// New prepares the directory for traces with names of this pattern (see
// settings.Expand; a directory stands for DIR/%r.pwt) and for the merged trace,
// which is DIR/program.pwt if merged is "". Files in the way are an error, with
// force they are removed.
func New(pattern, merged, program string, force bool) (*Run, error) {
	if info, err := os.Stat(pattern); strings.HasSuffix(pattern, "/") || err == nil && info.IsDir() {
		pattern = filepath.Join(pattern, "%r.pwt")
	}
	pattern, err := filepath.Abs(pattern)
	if err != nil {
		return nil, err
	}
	match, err := matcher(pattern)
	if err != nil {
		return nil, err
	}
	r := &Run{pattern: pattern, dir: strings.ReplaceAll(filepath.Dir(pattern), "%%", "%"), match: match, merged: merged}
	if r.merged == "" {
		r.merged = filepath.Join(r.dir, filepath.Base(program)+".pwt")
	}
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		return nil, err
	}
	inTheWay, err := r.files()
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(r.merged); err == nil {
		inTheWay = append(inTheWay, r.merged)
	}
	for _, name := range inTheWay {
		if !force {
			return nil, fmt.Errorf("%s exists: --force replaces it", name)
		}
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Pattern is the value for PINWHEEL_RECORD.
func (r *Run) Pattern() string { return r.pattern }

// files returns the traces of single ranks, by name.
func (r *Run) files() ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if path := filepath.Join(r.dir, e.Name()); r.match.MatchString(e.Name()) && path != r.merged {
			names = append(names, path)
		}
	}
	return names, nil
}

// Merge puts what the ranks have written into one trace. It fails with
// ErrNothing if they have written none.
func (r *Run) Merge() (Result, error) {
	names, err := r.files()
	if err != nil {
		return Result{}, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { // opened, and nothing came
		info, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
	})
	if len(names) == 0 {
		return Result{}, fmt.Errorf("%s: %w", r.pattern, ErrNothing)
	}
	h, torn, err := trace.Merge(r.merged, names)
	return Result{r.merged, h.Program, len(names), h.Ranks, torn}, err
}
