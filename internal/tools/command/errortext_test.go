package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// A newline in a name is told from one between two errors.
func TestJoinedErrorsAreOneLine(t *testing.T) {
	open := &fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist}
	closed := errors.New("closed")
	for want, err := range map[string]error{
		`open a\nb: file does not exist`:                      open,
		`open a\nb: file does not exist; closed`:              errors.Join(open, closed),
		`copy: open a\nb: file does not exist; closed, again`: fmt.Errorf("copy: %w, again", errors.Join(open, closed)),
		`open a\nb: file does not exist, a\tb; closed\n.`: fmt.Errorf("%w, %w\n.", open,
			errors.Join(errors.New("a\tb"), closed)),
		`several: a\nb`: several{nil, errors.New("a\nb"), nil},
	} {
		var errs bytes.Buffer
		e := &Env{Stderr: &errs, out: &output{}, spec: &Spec{Name: "tool"}}
		e.Complain(err)
		if got := errs.String(); got != "tool: "+want+"\n" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// several are errors of a package that leaves a nil among them.
type several []error

func (s several) Error() string   { return "several: " + s[1].Error() }
func (s several) Unwrap() []error { return s }
