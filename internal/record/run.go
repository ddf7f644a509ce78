package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	Records uint64  // of all ranks
	Torn    []error // *trace.TornError of files that were cut off
}

// ErrNothing: no rank has recorded anything.
var ErrNothing = errors.New("nothing was recorded")

// New prepares the directory for traces with names of this pattern (see
// settings.Expand; a directory stands for DIR/%r.pwt) and for the merged trace,
// which is DIR/program.pwt if merged is "". Files in the way are an error, with
// force they are removed.
func New(pattern, merged, program string, force bool) (*Run, error) {
	if info, err := os.Stat(pattern); strings.HasSuffix(pattern, "/") || err == nil && info.IsDir() {
		pattern = filepath.Join(pattern, "%r.pwt")
	}
	if !filepath.IsAbs(pattern) { // ranks may work in another directory
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		pattern = filepath.Join(strings.ReplaceAll(wd, "%", "%%"), pattern)
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
	inTheWay, err := r.files(false)
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

// files returns the traces of single ranks, by name. With usable, a trace that
// is not whole, since its rank was killed, is only there if there is no whole
// one, and one that nothing was written to isn't.
func (r *Run) files(usable bool) ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	taken := map[string]bool{}
	for _, e := range entries { // by name: whole ones come first
		m := r.match.FindStringSubmatch(e.Name())
		path := filepath.Join(r.dir, e.Name())
		if m == nil || path == r.merged {
			continue
		}
		if usable {
			info, err := e.Info()
			if taken[m[1]] || err != nil || info.Size() == 0 {
				continue
			}
			taken[m[1]] = true
		}
		names = append(names, path)
	}
	return names, nil
}

// Merge puts what the ranks have written into one trace. It fails with
// ErrNothing if that is nothing.
func (r *Run) Merge() (Result, error) {
	names, err := r.files(true)
	if err != nil {
		return Result{}, err
	}
	if len(names) == 0 {
		return Result{}, fmt.Errorf("%s: %w", r.pattern, ErrNothing)
	}
	h, torn, err := trace.Merge(r.merged, names)
	if err != nil {
		return Result{}, err
	}
	res := Result{Path: r.merged, Program: h.Program, Files: len(names), Ranks: h.Ranks, Torn: torn}
	if res.Records, err = records(r.merged); err == nil && res.Records == 0 {
		err = errors.Join(fmt.Errorf("%s: %w", r.pattern, ErrNothing), os.Remove(r.merged))
	}
	return res, err
}

// records counts what is in a trace.
func records(path string) (n uint64, err error) {
	f, err := trace.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read from
	for _, rank := range f.Ranks() {
		n += f.Records(rank)
	}
	return n, nil
}
