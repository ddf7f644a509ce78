package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"pinwheel/internal/console"
	"pinwheel/internal/outfile"
)

// Env is what a subcommand works with.
type Env struct {
	// Stdout and Stderr are where it prints. That something could not be
	// written to Stdout is found out in the end, by whoever runs the command.
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is one
	out            *output
	spec           *Spec
	status         int // to exit with
}

// Fail makes the command exit with Failed, without a word.
func (e *Env) Fail() { e.status = max(e.status, Failed) }

// Complain prints an error; the command will exit with a failure. Wrong
// arguments go before whatever else failed.
func (e *Env) Complain(err error) {
	e.status = max(e.status, statusOf(err))
	if e.out.err == nil || !errors.Is(err, e.out.err) { // which is told once, in the end
		e.Note("%v", err)
	}
}

// Note prints one line that is no failure.
func (e *Env) Note(format string, args ...any) {
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = textOf(err)
		}
	}
	fmt.Fprintf(e.Stderr, "%s: %s\n", e.spec.Name, oneLine(fmt.Sprintf(format, args...)))
}

// Bytes of a message that is too long, since an argument in it is: those of
// its beginning and of its end, which is the cause.
const headBytes, tailBytes = 1000, 300

// oneLine makes a message one line that no terminal takes for commands.
func oneLine(msg string) string {
	msg = strings.TrimSpace(msg)
	if len(msg) > headBytes+tailBytes {
		msg = msg[:headBytes] + " ... " + msg[len(msg)-tailBytes:]
	}
	return console.Printable(msg)
}

// output is standard output. It remembers the first error, as the many small writes
// of a table are not looked at one by one.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = fmt.Errorf("standard output: %w", outfile.Cause(err))
	}
	return n, o.err
}
