// Package jobreport merges the reports of the ranks of a job, one file each, into
// one: text, or a page of HTML (package page).
//
// # Caveats
//
// The node where the job was started must see the files.
package jobreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"pinwheel/internal/report"
	"pinwheel/internal/tools/jobreport/page"
)

// ErrNone means that no rank has written a report.
var ErrNone = errors.New("no rank has written a report")

// maxBytes bounds the report of a rank; a larger file is something else.
const maxBytes = 1 << 20

// maxBad is how many unreadable files an error names.
const maxBad = 3

// job is what the reports of the ranks are put into.
type job interface {
	Add(r report.Rank)
	Write(w io.Writer) error
}

// Write reads reports of single ranks of one job, as PINWHEEL_STATS=FILE.json
// writes them, and prints one report of all. It also prints if some files can't be
// read; the error then has one line for each of the first few of them.
func Write(w io.Writer, files []string) error { return merge(w, files, &report.Job{}) }

// WriteHTML is Write for a page of HTML.
func WriteHTML(w io.Writer, files []string) error { return merge(w, files, &page.Page{}) }

// Read reads the reports as Write does, for who wants their sums. Its errors are those of Write.
func Read(files []string) (*report.Job, error) {
	var j report.Job
	return &j, merge(nil, files, unwritten{&j})
}

// unwritten is a job that prints nothing.
type unwritten struct{ *report.Job }

func (unwritten) Write(io.Writer) error { return nil }

func merge(w io.Writer, files []string, all job) error {
	type process struct {
		rank, pid int
		host      string
	}
	seen := map[process]string{}
	var bad []error
	for _, name := range files {
		r, err := read(name)
		if err == nil {
			p := process{r.Rank, r.PID, r.Host}
			if other := seen[p]; other != "" {
				err = fmt.Errorf("%s is of the same process as %s", name, other)
			} else {
				seen[p] = name
				all.Add(r)
			}
		}
		if err != nil {
			bad = append(bad, err)
		}
	}
	if len(seen) == 0 {
		bad = append(few(bad), ErrNone)
		return errors.Join(bad...)
	}
	return errors.Join(append(few(bad), all.Write(w))...)
}

// few returns the first errors and the number of the others.
func few(errs []error) []error {
	if more := len(errs) - maxBad; more > 0 {
		return append(errs[:maxBad:maxBad], fmt.Errorf("%d more files can't be used", more))
	}
	return errs
}

// read reads the report of a rank.
func read(name string) (r report.Rank, err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, err
	}
	defer f.Close() // only read from
	in := &io.LimitedReader{R: f, N: maxBytes}
	d := json.NewDecoder(in)
	err = d.Decode(&r)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return r, err
	case in.N == 0:
		err = errors.New("it is too large")
	case errors.Is(err, io.EOF):
		err = errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it is cut off")
	case err == nil && r.Size < 1 && r.PID == 0:
		err = errors.New("it says nothing of a process")
	case err == nil:
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more in it")
		}
	}
	if err != nil {
		return r, fmt.Errorf("%s is not the report of a rank, as PINWHEEL_STATS=FILE.json makes it: %w", name, err)
	}
	return r, nil
}
