// Command pinwheel starts programs under Pinwheel, records them, and says what
// Pinwheel can do on a machine.
//
// It holds no logic of its own: commands are rewritten by package
// internal/launch, traces collected by internal/record, machines examined by
// internal/doctor, settings listed by internal/settings. See pinwheel --help, or
// pinwheel.1, which is made from the same declarations.
//
// Exit status: that of the program for run and record; else 0 if all went
// well, 1 if something failed or, for doctor, is missing. 2 for wrong arguments;
// 126 and 127 as in a shell if the program can't be started or is not found.
package main

//go:generate sh -c "go run . man > pinwheel.1"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"pinwheel/internal/outfile"
	"pinwheel/internal/version"
)

const (
	exitFailed   = 1
	exitUsage    = 2
	exitCantExec = 126
	exitNotFound = 127
)

type cli struct {
	Run     runCmd           `cmd:"" help:"Run a program or an MPI job with just-in-time memory registration."`
	Record  recordCmd        `cmd:"" help:"Run it and record what it communicates, for nasreplay."`
	Report  reportCmd        `cmd:"" help:"Put reports of single ranks into one."`
	Info    infoCmd          `cmd:"" help:"Show the version, what can be used here, and settings."`
	Doctor  doctorCmd        `cmd:"" help:"Examine this machine: what will be used, why, and what is missing."`
	Man     manCmd           `cmd:"" hidden:"" help:"Print the manual page."`
	Version kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	outfile.RemoveOnSignals()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is a fault of the arguments that kong can't see.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the command with a certain status.
type statusError struct {
	error
	status int
}

// newParser returns the parser of the declarations above.
func newParser(options ...kong.Option) *kong.Kong {
	c := &cli{}
	c.Run.Plugins, c.Run.settings = settingFlags()
	c.Record.Plugins, c.Record.settings = settingFlags("record")
	parser, err := kong.New(c, append([]kong.Option{
		kong.Name("pinwheel"),
		kong.Description("Just-in-time memory registration for RDMA, under unmodified MPI programs."),
		kong.Vars{"version": "pinwheel " + version.String()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{{Key: settingsGroup, Title: "Settings, each for the variable of the same name:"}}),
	}, options...)...)
	if err != nil {
		panic(err) // the declarations are wrong
	}
	return parser
}

// run is the whole command, unless that becomes another program.
func run(args []string, stdout, stderr io.Writer) int {
	e := &env{stdout: stdout, stderr: stderr}
	exited := false
	parser := newParser(kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }))
	k, err := parser.Parse(args)
	if exited { // --help or --version
		return 0
	}
	if err != nil {
		e.note("%v (see pinwheel --help)", err)
		return exitUsage
	}
	err = k.Run(e)
	if err != nil {
		e.note("%v", err)
	}
	var status statusError
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, &status):
		return status.status
	case err != nil:
		return exitFailed
	}
	return e.status
}

// env is what a subcommand works with.
type env struct {
	stdout, stderr io.Writer
	status         int // to exit with
}

// note prints one line.
func (e *env) note(format string, args ...any) {
	msg := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(e.stderr, "pinwheel: %s\n", msg)
}
