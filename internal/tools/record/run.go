package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pinwheel/internal/outfile"
	"pinwheel/trace"
)

// Run is one recorded job.
type Run struct {
	pattern string // absolute
	dir     string
	match   *regexp.Regexp
	merged  string
	force   bool
	old     []string // traces of ranks that are in the way
}

// Result is what a job has recorded.
type Result struct {
	Path    string // of the one trace
	Program string
	Files   int     // of single ranks
	Ranks   int     // of the job
	Records uint64  // of all ranks
	Torn    []error // *trace.TornError of files that were cut off
	LeftOut string  // calls that the trace lacks, for people; "" if it is complete
	// Started is what the processes have recorded that these ranks started, one for
	// each MPI_Comm_spawn: their ranks are numbered from 0 as well, and so they
	// have a trace of their own.
	Started []Result
}

// ErrNothing means that no rank has recorded anything.
var ErrNothing = errors.New("nothing was recorded")

// New checks that traces with names of this pattern (see settings.Expand; a
// directory stands for DIR/%r.pwt) can be written, and the merged trace, which is
// DIR/program.pwt if merged is "". Files in the way are an error without force. Nothing
// is changed until Prepare.
func New(pattern, merged, program string, force bool) (*Run, error) {
	if isDirectory(pattern) {
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
	r := &Run{pattern: pattern, dir: strings.ReplaceAll(filepath.Dir(pattern), "%%", "%"), match: match,
		merged: merged, force: force}
	if r.merged == "" {
		r.merged = filepath.Join(r.dir, filepath.Base(program)+".pwt")
	}
	if r.old, err = r.files(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range append(slices.Clone(r.old), r.merged) {
		switch info, err := os.Stat(name); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is in the way of a trace, and no file", name)
		case !force:
			return nil, fmt.Errorf("%s exists: --force replaces it", name)
		}
	}
	if err := outfile.Check(r.merged); err != nil { // which is written after the job
		return nil, err
	}
	return r, nil
}

// Prepare makes the directory and removes the traces of ranks that are in the
// way, for a job that is about to start. The merged trace is there until Merge replaces it.
func (r *Run) Prepare() error {
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		return err
	}
	for _, name := range r.old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// isDirectory reports whether a pattern stands for the files of a directory,
// which need not be there: it has neither a placeholder nor the ending of a trace.
func isDirectory(pattern string) bool {
	info, err := os.Stat(pattern)
	if err == nil {
		return info.IsDir()
	}
	base := filepath.Base(pattern)
	return strings.HasSuffix(pattern, "/") || !strings.Contains(base, "%") && filepath.Ext(base) != ".pwt"
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
	worlds := map[string][]string{}
	for _, name := range names {
		world := r.world(name)
		worlds[world] = append(worlds[world], name)
	}
	var res Result
	var bad error
	if launched := worlds[""]; len(launched) > 0 {
		res, bad = r.merge(r.merged, launched)
		delete(worlds, "")
	}
	for _, world := range slices.SortedFunc(maps.Keys(worlds), byNumber) {
		started, err := r.merge(r.mergedOf(world), worlds[world])
		if err == nil {
			res.Started = append(res.Started, started)
		}
		bad = errors.Join(bad, err)
	}
	return res, bad
}

func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// world returns what is before the rank in the name of a file; see settings.World.
func (r *Run) world(name string) string {
	group := r.match.SubexpIndex(worldGroup)
	if group < 0 {
		return ""
	}
	return r.match.FindStringSubmatch(filepath.Base(name))[group]
}

// mergedOf returns the merged trace of processes that MPI_Comm_spawn has started.
func (r *Run) mergedOf(world string) string {
	ext := filepath.Ext(r.merged)
	return strings.TrimSuffix(r.merged, ext) + "-" + world + ext
}

func (r *Run) merge(merged string, names []string) (Result, error) {
	if _, err := os.Lstat(merged); err == nil && merged != r.merged && !r.force {
		return Result{}, fmt.Errorf("%s exists: --force replaces it", merged)
	}
	h, torn, err := trace.Merge(merged, names)
	if err != nil {
		return Result{}, err
	}
	res := Result{Path: merged, Program: h.Program, Files: len(names), Ranks: h.Ranks, Torn: torn}
	if res.Records, res.LeftOut, err = content(merged); err == nil && res.Records == 0 {
		err = errors.Join(fmt.Errorf("%s: %w", r.pattern, ErrNothing), os.Remove(merged))
	}
	if err != nil {
		return Result{}, err
	}
	return res, nil
}

// content says how many records are in a trace, and what it lacks.
func content(path string) (n uint64, leftOut string, err error) {
	f, err := trace.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close() // only read from
	for _, rank := range f.Ranks() {
		n += f.Records(rank)
	}
	leftOut, err = f.LeftOut()
	return n, leftOut, err
}
